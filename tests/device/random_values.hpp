#pragma once

#include "device/dtype.hpp"
#include "device/view.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace sifr::test {

/// fp32 values of an ordinary size, around 1.
inline std::vector<float> ordinary_values(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values)
    value = normal(random);
  return values;
}

/// fp32 values with any bits: every exponent, denormals, infinities, NaNs, both zeros.
inline std::vector<float> any_values(std::int64_t count, std::uint32_t seed) {
  constexpr std::uint32_t kSpecial[] = {0x00000000,
                                        0x80000000,
                                        0x7F800000,
                                        0xFF800000,
                                        0x7FC00000,
                                        0x7F800001,
                                        0x00000001,
                                        0x807FFFFF,
                                        0x00800000,
                                        0x7F7FFFFF,
                                        0x3F800000,
                                        0x33000000};
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    const auto bits = static_cast<std::uint32_t>(random());
    value = std::bit_cast<float>(bits % 8 == 0 ? kSpecial[bits / 8 % std::size(kSpecial)] : bits);
  }
  return values;
}

/// Equal bits, or two NaNs: their payloads are not promised.
inline bool is_same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

inline bool is_same(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!is_same(a[i], b[i])) return false;
  }
  return true;
}

template <class T>
View view_of(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()),
          static_cast<std::int64_t>(values.size()),
          kDTypeOf<T>};
}

template <class T>
ConstView view_of(const std::vector<T>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()),
          static_cast<std::int64_t>(values.size()),
          kDTypeOf<T>};
}

template <class T>
std::vector<T> narrow(const std::vector<float>& values) {
  std::vector<T> result;
  for (const float value : values) {
    if constexpr (std::is_same_v<T, bfloat16>) result.push_back(to_bfloat16(value));
    if constexpr (std::is_same_v<T, float16>) result.push_back(to_float16(value));
    if constexpr (std::is_same_v<T, float>) result.push_back(value);
  }
  return result;
}

/// Counts around vector widths, quanta and pieces.
inline constexpr std::int64_t kCounts[] = {
    0, 1, 7, 16, 255, 256, 257, 1000, 4096, 32768, 32769, 100003};

}  // namespace sifr::test
