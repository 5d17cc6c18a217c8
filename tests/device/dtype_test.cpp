#include "device/dtype.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace sifr;

namespace {

float float_of(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

template <class Narrow>
bool is_nan(Narrow value) {
  return std::isnan(to_float(value));
}

// The nearest of the narrow type's values to `value`, by looking at its neighbours' distances in
// double.
template <class Narrow>
bool is_nearest(Narrow got, double value) {
  const auto distance = [&](std::uint16_t bits) {
    return std::abs(static_cast<double>(to_float(Narrow{bits})) - value);
  };
  const double mine = distance(got.bits);
  for (const int step : {-1, 1}) {
    const auto bits = static_cast<std::uint16_t>(got.bits + step);
    if ((bits & 0x7FFFU) == 0x7FFFU || is_nan(Narrow{bits})) continue;
    const double other = distance(bits);
    if (other < mine || (other == mine && (got.bits & 1U) != 0)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("every bf16 value survives the way to fp32 and back", "[device]") {
  int failures = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const bfloat16 value{static_cast<std::uint16_t>(bits)};
    const bfloat16 back = to_bfloat16(to_float(value));
    failures += is_nan(value) ? back.bits != 0x7FC0 : back.bits != value.bits;
  }
  CHECK(failures == 0);
}

TEST_CASE("every fp16 value survives the way to fp32 and back", "[device]") {
  int failures = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float16 value{static_cast<std::uint16_t>(bits)};
    const float16 back = to_float16(to_float(value));
    failures += is_nan(value) ? back.bits != 0x7E00 : back.bits != value.bits;
  }
  CHECK(failures == 0);
}

TEST_CASE("fp16 values have the value that the format says", "[device]") {
  int failures = 0;
  for (std::uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const auto exponent = static_cast<int>(bits >> 10);
    const auto fraction = static_cast<double>(bits & 0x3FFU);
    const double value =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    failures += to_float(float16{static_cast<std::uint16_t>(bits)}) != static_cast<float>(value);
    failures +=
        to_float(float16{static_cast<std::uint16_t>(bits | 0x8000U)}) != static_cast<float>(-value);
  }
  CHECK(failures == 0);
  CHECK(std::isinf(to_float(float16{0x7C00})));
  CHECK(to_float(float16{0xFC00}) < 0);
}

TEST_CASE("fp32 rounds to the nearest bf16, ties to even", "[device]") {
  CHECK(to_bfloat16(float_of(0x3F808000)).bits == 0x3F80);  // a tie below an even value
  CHECK(to_bfloat16(float_of(0x3F818000)).bits == 0x3F82);  // a tie below an odd one
  CHECK(to_bfloat16(float_of(0x3F808001)).bits == 0x3F81);
  CHECK(to_bfloat16(float_of(0x3F807FFF)).bits == 0x3F80);
  CHECK(to_bfloat16(float_of(0x00008000)).bits == 0x0000);  // denormals
  CHECK(to_bfloat16(float_of(0x00018000)).bits == 0x0002);
  CHECK(to_bfloat16(float_of(0x80000000)).bits == 0x8000);
  CHECK(to_bfloat16(std::numeric_limits<float>::max()).bits == 0x7F80);
  CHECK(to_bfloat16(float_of(0x7F800001)).bits == 0x7FC0);
  CHECK(to_bfloat16(float_of(0xFFFFFFFF)).bits == 0x7FC0);
}

TEST_CASE("fp32 rounds to the nearest fp16, ties to even, over all exponents", "[device]") {
  int failures = 0;
  for (std::uint32_t bits = 0; bits < 0x477FF000; bits += 4093) {  // up to where infinity begins
    const float value = float_of(bits);
    failures += is_nearest(to_float16(value), static_cast<double>(value)) ? 0 : 1;
    failures += to_float16(-value).bits != (to_float16(value).bits | 0x8000U);
  }
  for (std::uint32_t bits = 0; bits < 0x7BFF; ++bits) {  // the ties between neighbours
    const double low = static_cast<double>(to_float(float16{static_cast<std::uint16_t>(bits)}));
    const double high =
        static_cast<double>(to_float(float16{static_cast<std::uint16_t>(bits + 1)}));
    failures += to_float16(static_cast<float>((low + high) / 2)).bits != bits + (bits & 1U);
  }
  CHECK(failures == 0);
  CHECK(to_float16(65519.996F).bits == 0x7BFF);
  CHECK(to_float16(65520.0F).bits == 0x7C00);
  CHECK(to_float16(-std::numeric_limits<float>::infinity()).bits == 0xFC00);
  CHECK(to_float16(float_of(0x7F800001)).bits == 0x7E00);
  CHECK(to_float16(std::numeric_limits<float>::denorm_min()).bits == 0);
}

TEST_CASE("dtypes have the names and sizes of a ds_config", "[device]") {
  CHECK(name_of(DType::kFloat32) == "fp32");
  CHECK(name_of(DType::kBFloat16) == "bf16");
  CHECK(name_of(DType::kFloat16) == "fp16");
  CHECK(size_of(DType::kFloat32) == 4);
  CHECK(size_of(DType::kBFloat16) == 2);
  CHECK(kDTypeOf<float> == DType::kFloat32);
  CHECK(kDTypeOf<bfloat16> == DType::kBFloat16);
  CHECK(kDTypeOf<float16> == DType::kFloat16);
}
