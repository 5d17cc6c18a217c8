#pragma once

#include "config_schema/config_error.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sifr::detail {

/// A place in the file, both from 1; columns count characters. 0: no place.
struct Position {
  std::int64_t line = 0;
  std::int64_t column = 0;
};

/// Everything that is wrong with one config, gathered so that the user sees it at once.
class Problems {
 public:
  void add(std::string pointer, Position position, std::string text);
  /// An "auto" that `hint` would resolve.
  void add_unresolved(std::string pointer, Position position, std::string_view hint);
  [[nodiscard]] bool is_empty() const { return list_.empty(); }
  [[nodiscard]] bool has(std::string_view pointer) const;
  /// No further problem will be listed, only counted.
  [[nodiscard]] bool is_full() const { return list_.size() >= kMost; }
  /// Throws a ConfigError with all of them, in the order of the file, if there are any.
  void throw_if_any(const std::string& file_name);

 private:
  static constexpr std::size_t kMost = 100;
  std::vector<ConfigError::Problem> list_;
  std::size_t unlisted_ = 0;
};

/// Text from a file made fit for a message: control characters and broken UTF-8 are escaped, and
/// what goes beyond `longest` bytes is cut.
[[nodiscard]] std::string printable(std::string_view text, std::size_t longest = 80);

/// `parent` + "/" + `key`, escaped as RFC 6901 says.
[[nodiscard]] std::string join_pointer(const std::string& parent, std::string_view key);

}  // namespace sifr::detail
