#include "config_schema/detail/value_reader.hpp"

#include "config_schema/detail/nearest_key.hpp"
#include "config_schema/detail/number_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace sifr::detail {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return result;
}

std::string described(const Range& range) {
  const bool has_min = std::isfinite(range.min);
  const bool has_max = std::isfinite(range.max);
  const std::string max = fmt::format("{}{}", range.excludes_max ? "below " : "", range.max);
  if (has_min && has_max) return fmt::format("from {} to {}", range.min, max);
  if (has_min) return fmt::format("{} {}", range.excludes_min ? "above" : "at least", range.min);
  return fmt::format("at most {}", max);
}

}  // namespace

bool ValueReader::refuse(const JsonNode& node,
                         const std::string& pointer,
                         const std::string& wanted) {
  problems_.add(
      pointer, node.position, fmt::format("must be {}, not {}", wanted, node.described()));
  return false;
}

bool ValueReader::is_in_range(const JsonNode& node,
                              const std::string& pointer,
                              const FieldInfo& info,
                              double value) {
  return info.range.has(value) || refuse(node, pointer, described(info.range));
}

// The spelling of a number, or nothing and a problem.
std::optional<std::string> ValueReader::number_text(const JsonNode& node,
                                                    const std::string& pointer,
                                                    std::string_view wanted) {
  if (node.is(JsonNode::Kind::kNumber)) return node.text;
  const bool is_quoted = node.is(JsonNode::Kind::kString) && read_double(node.text).has_value();
  if (is_quoted && reads_text_) {
    notices_.push_back(fmt::format("{} is {}; it is read as a number", pointer, node.described()));
    return node.text;
  }
  refuse(node, pointer, is_quoted ? fmt::format("{} without quotes", wanted) : std::string(wanted));
  return std::nullopt;
}

bool ValueReader::read(const JsonNode& node,
                       const std::string& pointer,
                       const FieldInfo& /*info*/,
                       bool& member) {
  if (node.is(JsonNode::Kind::kBool)) {
    member = node.text == "true";
    return true;
  }
  if (reads_text_ && (node.is(JsonNode::Kind::kString) || node.is(JsonNode::Kind::kNumber))) {
    static constexpr std::string_view kYes[] = {"true", "yes", "on", "1", "y", "t"};
    static constexpr std::string_view kNo[] = {"false", "no", "off", "0", "n", "f"};
    const std::string text = lower(node.text);
    const bool is_yes = std::find(std::begin(kYes), std::end(kYes), text) != std::end(kYes);
    if (is_yes || std::find(std::begin(kNo), std::end(kNo), text) != std::end(kNo)) {
      member = is_yes;
      notices_.push_back(
          fmt::format("{} is {}; it is read as {}", pointer, node.described(), is_yes));
      return true;
    }
  }
  return refuse(node, pointer, "true or false");
}

bool ValueReader::read(const JsonNode& node,
                       const std::string& pointer,
                       const FieldInfo& info,
                       std::int64_t& member) {
  const std::optional<std::string> text = number_text(node, pointer, "a whole number");
  if (!text) return false;
  const WholeNumber number = read_whole_number(*text);
  if (number.kind == WholeNumber::Kind::kFraction) return refuse(node, pointer, "a whole number");
  if (number.kind == WholeNumber::Kind::kTooLarge) {
    return refuse(node, pointer, "a whole number of at most 9223372036854775807");
  }
  if (!is_in_range(node, pointer, info, static_cast<double>(number.value))) return false;
  member = number.value;
  return true;
}

bool ValueReader::read(const JsonNode& node,
                       const std::string& pointer,
                       const FieldInfo& info,
                       double& member) {
  const std::optional<std::string> text = number_text(node, pointer, "a number");
  if (!text) return false;
  const std::optional<double> value = read_double(*text);
  if (!value) return refuse(node, pointer, "a number that a double can hold");
  if (!is_in_range(node, pointer, info, *value)) return false;
  member = *value;
  return true;
}

bool ValueReader::read(const JsonNode& node,
                       const std::string& pointer,
                       const FieldInfo& info,
                       std::array<double, 2>& member) {
  if (!node.is(JsonNode::Kind::kArray) || node.elements.size() != 2) {
    return refuse(node, pointer, "a list of two numbers, such as [0.9, 0.999]");
  }
  std::array<double, 2> values{};
  for (std::size_t i = 0; i < 2; ++i) {
    if (!read(node.elements[i], fmt::format("{}/{}", pointer, i), info, values[i])) return false;
  }
  member = values;
  return true;
}

std::optional<std::size_t> ValueReader::read_choice(const JsonNode& node,
                                                    const std::string& pointer,
                                                    const FieldInfo& info,
                                                    std::span<const std::string_view> names) {
  const std::string wanted = fmt::format("one of \"{}\"", fmt::join(names, "\", \""));
  if (!node.is(JsonNode::Kind::kString)) {
    refuse(node, pointer, wanted);
    return std::nullopt;
  }
  const auto is_same = [&](std::string_view name) {
    return info.ignores_case ? lower(name) == lower(node.text) : name == node.text;
  };
  const auto found = std::find_if(names.begin(), names.end(), is_same);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  if (std::any_of(info.unsupported.begin(), info.unsupported.end(), is_same)) {
    problems_.add(pointer,
                  node.position,
                  fmt::format("{} is not supported yet; use {}", printable(node.text), wanted));
    return std::nullopt;
  }
  const std::string_view nearest = nearest_key(node.text, names);
  const std::string hint = nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest);
  problems_.add(
      pointer, node.position, fmt::format("must be {}, not {}{}", wanted, node.described(), hint));
  return std::nullopt;
}

}  // namespace sifr::detail
