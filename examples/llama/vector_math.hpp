#pragma once

#include "examples/llama/element.hpp"

#include <bit>
#include <cstdint>

/// Functions and sums that compilers turn into vector code and that give the same bits at every
/// vector width.
namespace llama {

/// e^x within 2 units in the last place for x in [-87, 88], beyond which x is taken as the border.
LLAMA_INLINE float fast_exp(float x) {
  x = x < -87.0F ? -87.0F : x;
  x = x > 88.0F ? 88.0F : x;
  // Adding 1.5 · 2^23 leaves the nearest integer in the low bits.
  constexpr float kShift = 12582912.0F;
  const float shifted = x * 1.44269504F + kShift;
  const float n = shifted - kShift;
  const float r = (x - n * 0.693359375F) - n * -2.12194440e-4F;  // x − n·ln 2, ln 2 in two parts
  float p = 1.9875691500e-4F;                                    // Cephes' expf
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const float y = p * (r * r) + r + 1.0F;
  const std::uint32_t power = (std::bit_cast<std::uint32_t>(shifted) - 0x4B400000U + 127U) << 23;
  return y * std::bit_cast<float>(power);
}

LLAMA_INLINE float sigmoid(float x) {
  return 1.0F / (1.0F + fast_exp(-x));
}

/// Lanes of a sum: element i goes to lane i mod kLanes, lanes are added as a halving tree.
inline constexpr std::int64_t kLanes = 32;

/// Σ term(i), i in [0, count), in fp32.
template <class Term>
LLAMA_INLINE float sum_in_lanes(std::int64_t count, const Term& term) {
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += term(i + lane);
  }
  for (std::int64_t lane = 0; i < count; ++i, ++lane)
    lanes[lane] += term(i);
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::int64_t lane = 0; lane < half; ++lane)
      lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

/// The largest of value(i), i in [0, count); count is at least 1. NaNs are passed over.
template <class Value>
LLAMA_INLINE float largest_in_lanes(std::int64_t count, const Value& value) {
  float lanes[kLanes];
  for (float& lane : lanes)
    lane = value(0);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const float next = value(i + lane);
      lanes[lane] = next > lanes[lane] ? next : lanes[lane];
    }
  }
  for (; i < count; ++i)
    lanes[0] = value(i) > lanes[0] ? value(i) : lanes[0];
  float largest = lanes[0];
  for (const float lane : lanes)
    largest = lane > largest ? lane : largest;
  return largest;
}

}  // namespace llama
