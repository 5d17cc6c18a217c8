#pragma once

#include "config_schema/detail/problems.hpp"
#include "config_schema/detail/source_text.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sifr::detail {

struct JsonMember;

/// A JSON value and where it stands. Numbers keep the file's spelling.
struct JsonNode {
  enum class Kind : std::uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  Position position;
  std::string text;  ///< string: its characters; number: as written; bool: true, false
  std::vector<JsonNode> elements;   ///< of an array
  std::vector<JsonMember> members;  ///< of an object, in the file's order

  [[nodiscard]] bool is(Kind other) const { return kind == other; }
  [[nodiscard]] bool is_auto() const { return kind == Kind::kString && text == "auto"; }
  [[nodiscard]] const JsonNode* find(std::string_view key) const;
  /// The value for a message: `the number 1.5`, `true`, `the string "x"`, `an object`.
  [[nodiscard]] std::string described() const;
};

struct JsonMember {
  std::string key;
  Position position;  ///< of the key
  JsonNode value;
};

/// Reads `source` into a tree. Bad grammar and keys written twice (at any depth) go to `problems`;
/// the result is an empty object then.
[[nodiscard]] JsonNode parse_tree(const SourceText& source, Problems& problems);

}  // namespace sifr::detail
