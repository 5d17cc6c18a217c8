#pragma once

// The reference's own rounding and its own exact sum; no source is shared with the engine.
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace sifr::test {

/// Rounds to the nearest bfloat16, ties to even.
inline float round_to_bf16(float value) {
  if (std::isnan(value)) return value;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rest = bits & 0xFFFF;
  std::uint32_t upper = bits >> 16;
  if (rest > 0x8000 || (rest == 0x8000 && upper % 2 == 1)) ++upper;
  return std::bit_cast<float>(upper << 16);
}

/// The nearest double to the exact sum of finite doubles >= 0. Shewchuk's expansion: `parts` do not
/// overlap and their exact sum is the exact sum so far, so only the last addition rounds; a tie is
/// decided by the part below.
class ReferenceSum {
 public:
  void add(double value) {
    std::vector<double> rest;
    for (double part : parts_) {
      if (std::abs(value) < std::abs(part)) std::swap(value, part);
      const double high = value + part;
      const double low = part - (high - value);
      if (low != 0) rest.push_back(low);
      value = high;
    }
    rest.push_back(value);
    parts_ = std::move(rest);
  }
  [[nodiscard]] double value() const {
    if (parts_.empty()) return 0;
    auto part = parts_.rbegin();
    double high = *part++;
    double low = 0;
    while (part != parts_.rend() && low == 0) {
      const double sum = high + *part;
      low = *part++ - (sum - high);
      high = sum;
    }
    if (part != parts_.rend() && low != 0 && (low > 0) == (*part > 0)) {  // not a tie after all
      const double up = high + 2 * low;
      if (2 * low == up - high) high = up;
    }
    return high;
  }

 private:
  std::vector<double> parts_;  // from small to large
};

}  // namespace sifr::test
