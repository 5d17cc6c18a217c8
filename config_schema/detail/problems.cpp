#include "config_schema/detail/problems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace sifr::detail {
namespace {

// Bytes of the UTF-8 sequence that starts `text`; 0 if it is not one that may be printed.
std::size_t sequence_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) return 0;
  }
  return length;
}

}  // namespace

void Problems::add(std::string pointer, Position position, std::string text) {
  if (is_full()) {
    ++unlisted_;
  } else {
    list_.push_back({std::move(pointer), position.line, position.column, std::move(text), {}});
  }
}

void Problems::add_unresolved(std::string pointer, Position position, std::string_view hint) {
  const std::size_t count = list_.size();
  add(std::move(pointer),
      position,
      fmt::format("\"auto\" is not resolved; give the hint {} or write a value", hint));
  if (list_.size() > count) list_.back().hint = hint;
}

bool Problems::has(std::string_view pointer) const {
  return std::any_of(list_.begin(), list_.end(), [&](const ConfigError::Problem& problem) {
    return problem.pointer == pointer;
  });
}

void Problems::throw_if_any(const std::string& file_name) {
  if (list_.empty()) return;
  std::stable_sort(list_.begin(), list_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  if (unlisted_ > 0) list_.push_back({"", 0, 0, fmt::format("and {} more problems", unlisted_)});
  throw ConfigError(file_name, std::move(list_));
}

std::string printable(std::string_view text, std::size_t longest) {
  std::string result;
  while (!text.empty()) {
    if (result.size() >= longest) return result + "…";
    const std::size_t length = sequence_length(text);
    if (length == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

std::string join_pointer(const std::string& parent, std::string_view key) {
  std::string result = parent + "/";
  for (const char c : printable(key)) {
    if (c == '~') {
      result += "~0";
    } else if (c == '/') {
      result += "~1";
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace sifr::detail
