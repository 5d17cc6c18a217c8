#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "../sifr_error.hpp"

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

/// Rounds to nearest even; denormals are kept, every NaN becomes 0x7FC0. Integer arithmetic only, so
/// no compiler flag and no processor state changes its result.
[[nodiscard]] constexpr bfloat16 to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return {0x7FC0};
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16)};
}

/// Exact.
[[nodiscard]] constexpr float to_float(bfloat16 value) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

/// The DType of a C++ element type: float, sifr::bfloat16 or sifr::float16.
template <class T>
inline constexpr DType kDTypeOf = T::kNotAnElementType;
template <>
inline constexpr DType kDTypeOf<float> = DType::kFloat32;
template <>
inline constexpr DType kDTypeOf<bfloat16> = DType::kBFloat16;
template <>
inline constexpr DType kDTypeOf<float16> = DType::kFloat16;

}  // namespace sifr
