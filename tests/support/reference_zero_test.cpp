#include "tests/support/reference_zero.hpp"

#include "device/dtype.hpp"
#include "device/exact_sum.hpp"
#include "tests/support/reference_numbers.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <random>
#include <vector>

namespace sifr::test {
namespace {

ReferenceZero one_parameter(const std::vector<float>& values, const ReferenceOptions& options) {
  return ReferenceZero({{.name = "x", .master = values}}, options);
}

TEST_CASE("the reference rounds every kind of number to bf16 as the engine does") {
  std::mt19937 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()) << (i % 17));
    if (std::isnan(value)) continue;
    REQUIRE(std::bit_cast<std::uint32_t>(round_to_bf16(value)) ==
            std::bit_cast<std::uint32_t>(to_float(to_bfloat16(value))));
  }
}

TEST_CASE("the reference's exact sum and the engine's are two programs with one result") {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> fraction(1, 2);
  std::uniform_int_distribution<int> exponent(-290, 250);
  for (int round = 0; round < 200; ++round) {
    ReferenceSum reference;
    ExactSum exact;
    for (int i = 0; i < 1 + round; ++i) {
      const double value = std::ldexp(fraction(random), round % 2 == 0 ? exponent(random) : i % 60);
      reference.add(value);
      exact.add(value);
    }
    REQUIRE(reference.value() == exact.value());
  }
}

TEST_CASE("the reference's exact sum rounds ties to even, unless something small decides") {
  const auto sum = [](const std::vector<double>& values) {
    ReferenceSum exact;
    for (const double value : values)
      exact.add(value);
    return exact.value();
  };
  const double big = 0x1p53;
  CHECK(sum({big, 1}) == big);
  CHECK(sum({big, 1, 0x1p-900}) == big + 2);
  CHECK(sum({0x1p-900, big + 2, 1}) == big + 4);
  CHECK(sum({}) == 0);
}

TEST_CASE("the reference's first AdamW step moves by the learning rate") {
  ReferenceZero zero = one_parameter({1, -2, 0.5F}, {.clip = 0, .weight_decay = 0.1});
  const ReferenceReport report = zero.step({{{{3, -4, 0}}}}, 0.01);
  CHECK(report.gradient_norm == 5);
  CHECK(zero.master(0)[0] == Approx(1 * 0.999 - 0.01));
  CHECK(zero.master(0)[1] == Approx(-2 * 0.999 + 0.01));
  CHECK(zero.master(0)[2] == Approx(0.5 * 0.999));
}

TEST_CASE("the reference averages over ranks and micro-batches before it clips") {
  ReferenceZero zero = one_parameter({0}, {.clip = 1});
  const ReferenceReport report = zero.step({{{{1}}, {{2}}}, {{{}}, {{3}}}}, 0.01);
  CHECK(report.gradient_norm == 1.5);
}

TEST_CASE("the reference keeps the two orders of accumulation apart") {
  // Each micro-batch: (1 + 2^-24) = 1, twice. At the boundary: rank 1 first collects 2^-23, which
  // then counts.
  const ReferenceGradients gradients = {{{{1}}, {{0x1p-24F}}}, {{{0}}, {{0x1p-24F}}}};
  ReferenceZero each = one_parameter({0}, {.clip = 0});
  ReferenceZero boundary = one_parameter({0}, {.clip = 0, .reduces_at_boundary = true});
  CHECK(each.step(gradients, 1).gradient_norm != boundary.step(gradients, 1).gradient_norm);
}

TEST_CASE("the reference leaves everything alone when a gradient is not finite") {
  ReferenceZero zero = one_parameter({1}, {});
  CHECK_FALSE(zero.step({{{{INFINITY}}}}, 0.01).is_updated);
  CHECK(zero.master(0)[0] == 1);
}

}  // namespace
}  // namespace sifr::test
