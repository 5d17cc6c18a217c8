#include "config_schema/hints.hpp"

#include "config_schema/detail/field_info.hpp"
#include "config_schema/detail/hint_fields.hpp"
#include "config_schema/detail/nearest_key.hpp"
#include "config_schema/detail/number_text.hpp"
#include "config_schema/detail/problems.hpp"

#include <fmt/format.h>

#include <type_traits>
#include <vector>

namespace sifr {
namespace {

[[noreturn]] void refuse(std::string_view assignment, const std::string& text) {
  throw UsageError(fmt::format("hint \"{}\": {}", detail::printable(assignment), text));
}

bool read(std::string_view text, std::optional<std::int64_t>& hint) {
  if (!detail::read_double(text)) return false;
  const detail::WholeNumber number = detail::read_whole_number(text);
  constexpr std::int64_t kLargest = 1'000'000'000;  // its square still fits int64
  if (number.kind != detail::WholeNumber::Kind::kWhole || number.value < 1 ||
      number.value > kLargest) {
    return false;
  }
  hint = number.value;
  return true;
}

bool read(std::string_view text, std::optional<double>& hint) {
  const std::optional<double> value = detail::read_double(text);
  if (!value || !detail::kFp32.has(*value)) return false;
  hint = value;
  return true;
}

bool read(std::string_view text, std::optional<std::array<double, 2>>& hint) {
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) return false;
  const std::optional<double> first = detail::read_double(text.substr(0, comma));
  const std::optional<double> second = detail::read_double(text.substr(comma + 1));
  if (!first || !second || *first < 0 || *first >= 1 || *second < 0 || *second >= 1) return false;
  hint = {*first, *second};
  return true;
}

bool read(std::string_view text, std::optional<std::string>& hint) {
  if (text != "fp32" && text != "bf16" && text != "fp16") return false;
  hint = text;
  return true;
}

}  // namespace

void parse_hint(std::string_view assignment, Hints& hints) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) refuse(assignment, "write it as name=value");
  const std::string_view name = assignment.substr(0, equals);
  const std::string_view value = assignment.substr(equals + 1);
  std::vector<std::string_view> names;
  bool is_found = false;
  detail::visit_hints(hints, [&](std::string_view hint_name, std::string_view form, auto& hint) {
    names.push_back(hint_name);
    if (hint_name != name) return;
    is_found = true;
    if (!read(value, hint)) refuse(assignment, fmt::format("{} is {}", name, form));
  });
  if (is_found) return;
  const std::string_view nearest = detail::nearest_key(name, names);
  refuse(assignment,
         nearest.empty() ? fmt::format("the hints are {}", fmt::join(names, ", "))
                         : fmt::format("no hint has this name; did you mean {}?", nearest));
}

namespace detail {

void check_hints(const Hints& hints) {
  visit_hints(hints, [&](std::string_view name, std::string_view form, const auto& hint) {
    std::remove_cvref_t<decltype(hint)> same;
    const std::string text = hint_text(hints, name);
    if (hint && !read(text, same)) {
      refuse(fmt::format("{}={}", name, text), fmt::format("{} is {}", name, form));
    }
  });
}

std::string hint_text(const Hints& hints, std::string_view name) {
  std::string text;
  visit_hints(hints, [&](std::string_view hint_name, std::string_view /*form*/, const auto& hint) {
    if (hint_name != name || !hint) return;
    if constexpr (std::is_same_v<decltype(*hint), const std::array<double, 2>&>) {
      text = fmt::format("{},{}", (*hint)[0], (*hint)[1]);
    } else {
      text = fmt::format("{}", *hint);
    }
  });
  return text;
}

}  // namespace detail
}  // namespace sifr
