#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sifr::detail {

/// What the text of a JSON number is as a whole number; `value` counts only for kWhole.
struct WholeNumber {
  enum class Kind : std::uint8_t { kWhole, kFraction, kTooLarge };
  Kind kind = Kind::kWhole;
  std::int64_t value = 0;
};

/// Decimal arithmetic, so that 5e8 and 500000000.0 are exact and 9007199254740993.0 is not rounded.
[[nodiscard]] WholeNumber read_whole_number(std::string_view text);

/// The nearest double, whatever the locale; nothing if `text` is no number or too large for one.
[[nodiscard]] std::optional<double> read_double(std::string_view text);

}  // namespace sifr::detail
