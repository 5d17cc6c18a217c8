#pragma once

#include "../kernels.hpp"
#include "./clones.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

/// What a quantum adds to a norm and to a hash.
namespace sifr::detail {

using Doubles8 = double __attribute__((vector_size(8 * sizeof(double))));

/// Lane l of 32 adds the squares of elements l, l + 32, l + 64 … in that order; then lane l adds
/// lane l + 16, 8, 4, 2, 1.
SIFR_INLINE double square_sum_of_quantum(const float* values) {
  Doubles8 lanes[4] = {};
  for (int row = 0; row < kernels::kQuantum / 32; ++row) {
    for (int part = 0; part < 4; ++part) {
      Doubles8 value;
      for (int i = 0; i < 8; ++i)
        value[i] = values[32 * row + 8 * part + i];
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

/// Words of memory of any type, at any address.
using Word = std::uint32_t __attribute__((may_alias, aligned(1)));

/// Sums of the words' products, mod 2^64, then mixed with `key` by steps that can be undone.
template <int kWords>
SIFR_INLINE kernels::Hash128 hash_of_words(const std::byte* bytes, std::uint64_t key) {
  static constexpr HashMultipliers kMultipliers = make_hash_multipliers();
  const Word* const words = reinterpret_cast<const Word*>(bytes);
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  for (std::size_t i = 0; i < kWords; ++i) {
    low += std::uint64_t{words[i]} * kMultipliers.low[i];
    high += std::uint64_t{words[i]} * kMultipliers.high[i];
  }
  low = mix(low ^ key);
  high = mix(high + low);
  return {.low = mix(low + high), .high = high};
}

/// The bytes of a short last quantum are filled up with zeros; its length is part of its key.
template <int kWords>
SIFR_INLINE kernels::Hash128 hash_loop(ConstView values,
                                       std::int64_t parameter,
                                       std::int64_t first) {
  constexpr std::int64_t kBytes = std::int64_t{4} * kWords;
  const std::uint64_t parameter_key = mix(static_cast<std::uint64_t>(parameter));
  kernels::Hash128 sum;
  for (std::int64_t offset = 0; offset < values.bytes(); offset += kBytes) {
    const std::byte* quantum = values.data + offset;
    const std::int64_t length = std::min(kBytes, values.bytes() - offset);
    std::byte padded[kBytes];
    if (length < kBytes) {
      std::memset(padded, 0, kBytes);
      std::memcpy(padded, quantum, static_cast<std::size_t>(length));
      quantum = padded;
    }
    const auto index = static_cast<std::uint64_t>(first + offset / size_of(values.dtype));
    const std::uint64_t key = mix(mix(parameter_key + index) + static_cast<std::uint64_t>(length));
    const kernels::Hash128 hash = hash_of_words<kWords>(quantum, key);
    sum.low += hash.low;
    sum.high += hash.high + (sum.low < hash.low ? 1 : 0);
  }
  return sum;
}

SIFR_INLINE kernels::Hash128 hash_any(ConstView values,
                                      std::int64_t parameter,
                                      std::int64_t first) {
  if (values.dtype == DType::kFloat32) return hash_loop<256>(values, parameter, first);
  return hash_loop<128>(values, parameter, first);
}

}  // namespace sifr::detail
