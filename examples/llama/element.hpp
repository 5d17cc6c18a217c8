#pragma once

#include "device/dtype.hpp"
#include "examples/llama/clones.hpp"

#include <bit>
#include <cstdint>

/// Elements as numbers: every loop computes in fp32 and stores in T, rounding to nearest even.
namespace llama {

using sifr::bfloat16;

LLAMA_INLINE float widen(float value) {
  return value;
}

LLAMA_INLINE float widen(bfloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

template <class T>
LLAMA_INLINE T narrow(float value);

template <>
LLAMA_INLINE float narrow<float>(float value) {
  return value;
}

template <>
LLAMA_INLINE bfloat16 narrow<bfloat16>(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  return {static_cast<std::uint16_t>(is_nan ? 0x7FC0U : rounded)};
}

/// What a value becomes in memory of T: where a number passes through storage in between.
template <class T>
LLAMA_INLINE float rounded_to(float value) {
  return widen(narrow<T>(value));
}

}  // namespace llama
