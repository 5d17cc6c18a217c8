#include "config_schema/detail/number_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <system_error>

namespace sifr::detail {
namespace {

// The exponent behind 'e', held where no int64 could be reached any more.
std::int64_t read_exponent(std::string_view text) {
  constexpr std::int64_t kBound = 1'000'000'000'000;
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc::result_out_of_range) return text.starts_with('-') ? -kBound : kBound;
  return std::clamp(value, -kBound, kBound);
}

}  // namespace

WholeNumber read_whole_number(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  const std::size_t e = std::min(text.find_first_of("eE"), text.size());
  std::int64_t power = e < text.size() ? read_exponent(text.substr(e + 1)) : 0;
  std::string digits(text.substr(0, e));
  if (const std::size_t point = digits.find('.'); point != std::string::npos) {
    power -= static_cast<std::int64_t>(digits.size() - point - 1);
    digits.erase(point, 1);
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) return {};
  while (digits.back() == '0') {
    digits.pop_back();
    ++power;
  }
  if (power < 0) return {WholeNumber::Kind::kFraction, 0};
  if (power + static_cast<std::int64_t>(digits.size()) > 19)
    return {WholeNumber::Kind::kTooLarge, 0};
  digits.append(static_cast<std::size_t>(power), '0');
  if (is_negative) digits.insert(digits.begin(), '-');
  std::int64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec != std::errc{}) return {WholeNumber::Kind::kTooLarge, 0};
  return {WholeNumber::Kind::kWhole, value};
}

std::optional<double> read_double(std::string_view text) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_read = result.ec == std::errc{} && result.ptr == text.data() + text.size();
  if (!is_read || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace sifr::detail
