#pragma once

#include "config_schema/detail/problems.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace sifr::detail {

/// Counts lines and columns through a text, forward only.
class PositionCursor {
 public:
  explicit PositionCursor(std::string_view text) : text_(text) {}
  /// The place of `offset`, which must not lie before that of an earlier call.
  Position advance_to(std::size_t offset);

 private:
  std::string_view text_;
  std::size_t offset_ = 0;
  Position position_ = {1, 1};
};

/// A config's text as strict JSON: comments (#, //, /* */) and trailing commas are blanked, so that
/// every byte keeps its place, and offsets can be told as line and column.
class SourceText {
 public:
  /// A text that no JSON reader can make sense of (empty, NUL bytes, an open comment) adds to
  /// `problems`.
  SourceText(std::string_view text, Problems& problems);

  [[nodiscard]] const std::string& json() const { return json_; }
  [[nodiscard]] Position position(std::size_t offset) const {
    return PositionCursor(json_).advance_to(offset);
  }

 private:
  std::size_t blank_comment(std::size_t begin, Problems& problems);
  void blank_comments_and_commas(Problems& problems);

  std::string json_;
};

}  // namespace sifr::detail
