#include "device/exact_sum.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace sifr {
namespace {

constexpr std::int64_t kDigitBits = 32;
constexpr std::int64_t kDigitMask = 0xFFFFFFFF;
constexpr std::int64_t kLowestExponent = -1088;                 // of digit 0's lowest bit
constexpr std::int64_t kDenormalBit = 1088 - 1074;              // where double's lowest bit lies
constexpr std::int64_t kMostAdditions = std::int64_t{1} << 30;  // digits stay below 2^63

/// The bits of a non-negative normalised number, bit 0 weighing 2^-1088.
class Bits {
 public:
  explicit Bits(const ExactSum::Digits& digits) noexcept : digits_(digits) {}

  /// Position of the highest set bit, -1 for zero.
  [[nodiscard]] std::int64_t highest() const noexcept {
    for (std::int64_t i = ExactSum::kDigits - 1; i >= 0; --i) {
      if (const auto digit = static_cast<std::uint64_t>(digit_at(i)); digit != 0) {
        return i * kDigitBits + static_cast<std::int64_t>(std::bit_width(digit)) - 1;
      }
    }
    return -1;
  }

  [[nodiscard]] std::uint64_t at(std::int64_t position) const noexcept {
    const std::int64_t top = ExactSum::kDigits - 1;
    const std::int64_t i = position / kDigitBits < top ? position / kDigitBits : top;
    return static_cast<std::uint64_t>(digit_at(i) >> (position - i * kDigitBits)) & 1U;
  }

  [[nodiscard]] bool any_below(std::int64_t position) const noexcept {
    for (std::int64_t i = 0; i < position / kDigitBits; ++i) {
      if (digit_at(i) != 0) return true;
    }
    return (digit_at(position / kDigitBits) & ((std::int64_t{1} << (position % kDigitBits)) - 1)) !=
           0;
  }

 private:
  [[nodiscard]] std::int64_t digit_at(std::int64_t i) const noexcept {
    return digits_[static_cast<std::size_t>(i)];
  }
  const ExactSum::Digits& digits_;
};

/// The nearest double of a non-negative normalised number.
double round(const Bits& bits) noexcept {
  const std::int64_t top = bits.highest();
  if (top < 0) return 0;
  if (top + kLowestExponent > 1023) return std::numeric_limits<double>::infinity();
  const std::int64_t last = top - 52 > kDenormalBit ? top - 52 : kDenormalBit;
  std::uint64_t mantissa = 0;
  for (std::int64_t position = top; position >= last; --position) {
    mantissa = mantissa << 1 | bits.at(position);
  }
  const bool is_half = bits.at(last - 1) != 0;
  if (is_half && (bits.any_below(last - 1) || (mantissa & 1U) != 0)) ++mantissa;
  return std::ldexp(static_cast<double>(mantissa), static_cast<int>(last + kLowestExponent));
}

}  // namespace

ExactSum::ExactSum(const Digits& digits) noexcept : digits_(digits) {
  normalise();
}

void ExactSum::add(double value) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto exponent = static_cast<std::int64_t>(bits >> 52 & 0x7FFU);
  if (exponent == 0x7FF) return;
  if (++additions_ >= kMostAdditions) normalise();
  const std::uint64_t fraction = bits & 0xFFFFFFFFFFFFFU;
  // value = mantissa · 2^(position + kLowestExponent)
  const std::uint64_t mantissa = exponent == 0 ? fraction : fraction | std::uint64_t{1} << 52;
  const std::int64_t position = (exponent == 0 ? 1 : exponent) - 1075 - kLowestExponent;
  const auto first = static_cast<std::size_t>(position / kDigitBits);
  const std::int64_t shift = position % kDigitBits;
  const std::uint64_t low = (mantissa & 0xFFFFFFFFU) << shift;
  const std::uint64_t high = (mantissa >> kDigitBits) << shift;
  const std::int64_t sign = (bits >> 63) != 0 ? -1 : 1;
  digits_[first] += sign * static_cast<std::int64_t>(low & 0xFFFFFFFFU);
  digits_[first + 1] +=
      sign * static_cast<std::int64_t>((low >> kDigitBits) + (high & 0xFFFFFFFFU));
  digits_[first + 2] += sign * static_cast<std::int64_t>(high >> kDigitBits);
}

void ExactSum::add(const ExactSum& other) noexcept {
  ExactSum addend = other;
  addend.normalise();
  if (++additions_ >= kMostAdditions) normalise();
  for (std::size_t i = 0; i < digits_.size(); ++i)
    digits_[i] += addend.digits_[i];
}

void ExactSum::normalise() noexcept {
  std::int64_t carry = 0;
  for (std::size_t i = 0; i + 1 < digits_.size(); ++i) {
    const std::int64_t digit = digits_[i] + carry;
    carry = digit >> kDigitBits;  // rounds towards minus infinity
    digits_[i] = digit & kDigitMask;
  }
  digits_.back() += carry;
  additions_ = 0;
}

double ExactSum::value() const noexcept {
  ExactSum size = *this;
  size.normalise();
  const bool is_negative = size.digits_.back() < 0;
  if (is_negative) {
    for (std::int64_t& digit : size.digits_)
      digit = -digit;
    size.normalise();
  }
  const double rounded = round(Bits(size.digits_));
  return is_negative ? -rounded : rounded;
}

}  // namespace sifr
