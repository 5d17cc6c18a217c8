#pragma once

#include "config_schema/detail/json_tree.hpp"
#include "config_schema/detail/known_keys.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sifr::detail {

struct Reading;

/// Judges what no section reads: keys of the table by their verdict, all others as unknown.
class UnusedKeys {
 public:
  explicit UnusedKeys(Reading& reading) : reading_(reading) {}

  /// False if the table does not have the key.
  bool judge(const JsonMember& member, const std::string& pointer);
  /// An error or, where the file is read leniently, a notice; with the key of `parent` that was
  /// meant.
  void refuse_unknown(const JsonMember& member,
                      const std::string& parent,
                      std::vector<std::string_view> candidates);

 private:
  void judge_value(const JsonNode& value, const KnownKey& known);
  void judge_block(const JsonNode& block, const std::string& pointer, const KnownKey& known);
  void judge_children(const JsonNode& block, const std::string& pointer, bool is_off);
  bool has_type(const JsonNode& value, const KnownKey& known);
  void tell_unknown(const std::string& pointer, Position position, const std::string& text);
  void report(const JsonNode& value, const KnownKey& known);

  Reading& reading_;
  bool is_off_ = false;  // inside a block that is switched off: only names and types count
};

}  // namespace sifr::detail
