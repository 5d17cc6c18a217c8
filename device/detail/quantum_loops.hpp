#pragma once

#include "../kernels.hpp"
#include "./clones.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

/// What a quantum adds to a norm and to a hash.
namespace sifr::detail {

using Floats8 = float __attribute__((vector_size(8 * sizeof(float))));
using Doubles8 = double __attribute__((vector_size(8 * sizeof(double))));

/// Lane l of 32 adds the squares of elements l, l + 32, l + 64 … in that order; then lane l adds
/// lane l + 16, 8, 4, 2, 1.
SIFR_INLINE double square_sum_of_quantum(const float* values) {
  Doubles8 lanes[4] = {};
  for (int row = 0; row < kernels::kQuantum / 32; ++row) {
    for (int part = 0; part < 4; ++part) {
      Floats8 single;
      std::memcpy(&single, values + 32 * row + 8 * part, sizeof(single));
      const Doubles8 value = __builtin_convertvector(single, Doubles8);
      lanes[part] += value * value;
    }
  }
  const Doubles8 eight = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  double sums[8];
  std::memcpy(sums, &eight, sizeof(sums));
  for (int half = 4; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane)
      sums[lane] += sums[lane + half];
  }
  return sums[0];
}

/// sums[q] for each quantum of `values`; a short last one is filled up with zeros.
SIFR_INLINE void square_sums_loop(const float* values, std::int64_t count, double* sums) {
  const std::int64_t full = count / kernels::kQuantum;
  for (std::int64_t q = 0; q < full; ++q)
    sums[q] = square_sum_of_quantum(values + q * kernels::kQuantum);
  if (const std::int64_t rest = count - full * kernels::kQuantum; rest > 0) {
    float padded[kernels::kQuantum] = {};
    std::memcpy(
        padded, values + full * kernels::kQuantum, static_cast<std::size_t>(rest) * sizeof(float));
    sums[full] = square_sum_of_quantum(padded);
  }
}

/// A bijection of 64 bits (the finaliser of splitmix64).
SIFR_INLINE constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

/// Odd multipliers of a quantum's 32-bit words: a single flipped bit always changes both sums.
struct HashMultipliers {
  std::array<std::uint32_t, kernels::kQuantum> low;
  std::array<std::uint32_t, kernels::kQuantum> high;
};
SIFR_INLINE constexpr HashMultipliers make_hash_multipliers() {
  HashMultipliers multipliers = {};
  for (std::size_t i = 0; i < multipliers.low.size(); ++i) {
    const std::uint64_t random = mix((i + 1) * 0x9E3779B97F4A7C15U);
    multipliers.low[i] = static_cast<std::uint32_t>(random) | 1U;
    multipliers.high[i] = static_cast<std::uint32_t>(random >> 32) | 1U;
  }
  return multipliers;
}

/// Sums of the words' products, mod 2^64, then mixed with `key` by steps that can be undone.
SIFR_INLINE kernels::Hash128 hash_of_words(const std::uint32_t* words,
                                           std::size_t count,
                                           std::uint64_t key) {
  static constexpr HashMultipliers kMultipliers = make_hash_multipliers();
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  for (std::size_t i = 0; i < count; ++i) {
    low += std::uint64_t{words[i]} * kMultipliers.low[i];
    high += std::uint64_t{words[i]} * kMultipliers.high[i];
  }
  low = mix(low ^ key);
  high = mix(high + low);
  return {.low = mix(low + high), .high = high};
}

SIFR_INLINE kernels::Hash128 hash_loop(ConstView values,
                                       std::int64_t parameter,
                                       std::int64_t first) {
  const std::int64_t quantum_bytes = kernels::kQuantum * size_of(values.dtype);
  const std::uint64_t parameter_key = mix(static_cast<std::uint64_t>(parameter));
  kernels::Hash128 sum;
  for (std::int64_t offset = 0; offset < values.bytes(); offset += quantum_bytes) {
    const std::int64_t left = values.bytes() - offset;
    const auto bytes = static_cast<std::size_t>(left < quantum_bytes ? left : quantum_bytes);
    std::uint32_t words[kernels::kQuantum];
    words[(bytes - 1) / 4] = 0;  // the upper half of an odd 16-bit end
    std::memcpy(words, values.data + offset, bytes);
    const auto index = static_cast<std::uint64_t>(first + offset / size_of(values.dtype));
    const kernels::Hash128 quantum =
        hash_of_words(words, (bytes + 3) / 4, mix(mix(parameter_key + index) + bytes));
    sum.low += quantum.low;
    sum.high += quantum.high + (sum.low < quantum.low ? 1 : 0);
  }
  return sum;
}

}  // namespace sifr::detail
