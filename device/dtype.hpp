#pragma once

#include "../sifr_error.hpp"

#include <bit>
#include <cstdint>
#include <string_view>

namespace sifr {

/// How one element of a weight, gradient or wire buffer is stored.
enum class DType : std::uint8_t { kFloat32, kBFloat16, kFloat16 };

/// Bytes of one element.
[[nodiscard]] constexpr std::int64_t size_of(DType dtype) noexcept {
  return dtype == DType::kFloat32 ? 4 : 2;
}

/// "fp32", "bf16" or "fp16", as a ds_config spells them.
[[nodiscard]] SIFR_API std::string_view name_of(DType dtype) noexcept;

/// The upper half of an IEEE single: 8 bits of exponent, 7 of fraction.
struct bfloat16 {
  std::uint16_t bits = 0;
  friend constexpr bool operator==(bfloat16, bfloat16) = default;
};

/// IEEE half precision: 5 bits of exponent, 10 of fraction.
struct float16 {
  std::uint16_t bits = 0;
  friend constexpr bool operator==(float16, float16) = default;
};

// The conversions are integer arithmetic without branches: no compiler flag and no processor state
// changes their result, and loops over them become vector code.

/// Rounds to nearest even; denormals are kept, every NaN becomes 0x7FC0.
[[nodiscard]] constexpr bfloat16 to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  return {static_cast<std::uint16_t>(is_nan ? 0x7FC0U : rounded)};
}

/// Exact.
[[nodiscard]] constexpr float to_float(bfloat16 value) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

/// Rounds to nearest even, beyond 65504 to infinity; denormals are kept, every NaN becomes 0x7E00.
[[nodiscard]] constexpr float16 to_float16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t size = bits & 0x7FFFFFFFU;
  const std::uint32_t exponent = size >> 23;
  // Normal results: the exponent moves from bias 127 to bias 15, 13 bits of fraction are rounded
  // off.
  const std::uint32_t normal = (size - (112U << 23) + 0xFFFU + ((size >> 13) & 1U)) >> 13;
  // Denormal results count units of 2^-24: the fraction moves right by 14 … 25 bits.
  const std::uint32_t distance = exponent > 112 ? 14 : (exponent < 101 ? 25 : 126 - exponent);
  const std::uint32_t fraction = (size & 0x7FFFFFU) | 0x800000U;
  const std::uint32_t kept = fraction >> distance;
  const std::uint32_t denormal = (fraction + (1U << (distance - 1)) - 1 + (kept & 1U)) >> distance;
  const std::uint32_t finite = exponent > 112 ? normal : (exponent < 101 ? 0 : denormal);
  const std::uint32_t rounded = size >= 0x477FF000U ? 0x7C00U : finite;
  return {static_cast<std::uint16_t>(size > 0x7F800000U ? 0x7E00U : (sign | rounded))};
}

/// Exact.
[[nodiscard]] constexpr float to_float(float16 value) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000U) << 16;
  const std::uint32_t size = value.bits & 0x7FFFU;
  const std::uint32_t normal = (size << 13) + (112U << 23);
  const std::uint32_t special = (size << 13) | 0x7F800000U;
  const auto units =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(size)));
  const std::uint32_t denormal = size == 0 ? 0 : units - (24U << 23);
  const std::uint32_t finite = size < 0x400U ? denormal : normal;
  return std::bit_cast<float>(sign | (size >= 0x7C00U ? special : finite));
}

/// The DType of a C++ element type: float, sifr::bfloat16 or sifr::float16.
template <class T>
inline constexpr DType kDTypeOf = [] {
  static_assert(sizeof(T) == 0, "an element type is float, sifr::bfloat16 or sifr::float16");
  return DType();
}();
template <>
inline constexpr DType kDTypeOf<float> = DType::kFloat32;
template <>
inline constexpr DType kDTypeOf<bfloat16> = DType::kBFloat16;
template <>
inline constexpr DType kDTypeOf<float16> = DType::kFloat16;

}  // namespace sifr
