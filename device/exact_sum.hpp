#pragma once

#include "../sifr_error.hpp"

#include <array>
#include <cstdint>

namespace sifr {

/// A sum of finite doubles without rounding: a fixed-point number of 67 digits of 32 bits that
/// spans the whole range of double, digit i weighing 2^(32·i − 1088). Adding in any order, grouping
/// or number of ranks gives the same digits; the value is rounded once, when it is read. Copyable
/// as bytes: ranks exchange `digits` and add them as integers.
class SIFR_API ExactSum {
 public:
  static constexpr int kDigits = 67;
  using Digits = std::array<std::int64_t, kDigits>;

  ExactSum() = default;
  /// The number that `digits` stand for: those of a sum, or integer sums of them over up to 2^30
  /// ranks.
  explicit ExactSum(const Digits& digits) noexcept;

  /// Throws nothing; a non-finite value is the caller's to detect, and is ignored here.
  void add(double value) noexcept;
  void add(const ExactSum& other) noexcept;
  /// Brings every digit into [0, 2^32) but the last, which carries the sign. Equal sums then have
  /// equal digits. Needed before an exchange, and at least every 2^30 additions (add does it by
  /// itself).
  void normalise() noexcept;
  /// The nearest double, ties to even. ±infinity beyond the range.
  [[nodiscard]] double value() const noexcept;
  [[nodiscard]] const Digits& digits() const noexcept { return digits_; }

 private:
  Digits digits_ = {};
  std::int64_t additions_ = 0;  // since the last normalise
};

}  // namespace sifr
