#pragma once

#include "config_schema/detail/field_info.hpp"
#include "config_schema/detail/json_tree.hpp"
#include "config_schema/detail/problems.hpp"
#include "config_schema/detail/value_reader.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace sifr::detail {

/// What the readers of one file share.
struct Reading {
  const Hints& hints;
  Config& config;  ///< takes origins and notices
  Problems& problems;
  bool warns_of_unknown;
  int unknown_count = 0;
};

/// The visitor that fills a section from a JSON object: reads by key, resolves "auto", records what
/// was asked, and in finish() judges every key that was not.
class ObjectReader {
 public:
  /// `object` is null for a section that the file does not have: hints may still fill it.
  ObjectReader(Reading& reading, const JsonNode* object, std::string pointer, bool reads_text);

  template <class T>
  void field(const FieldInfo& info, T& member) {
    const JsonNode* node = take(info);
    if (!info.applies) return;
    const std::string pointer = join_pointer(pointer_, info.key);
    const std::optional<Resolved> resolved = resolve(info);
    const bool is_bound = resolved && info.auto_rule != nullptr && info.auto_rule->binds;
    if (node == nullptr) {
      if (is_bound) fill(pointer, info, nullptr, *resolved, member);
    } else if (node->is_auto()) {
      if (resolved) {
        fill(pointer, info, node, *resolved, member);
      } else {
        leave_unresolved(pointer, info, *node);
      }
    } else {
      set_origin(pointer, "file", node);
      const bool is_read = values_.read(*node, pointer, info, member);
      if (is_read && is_bound && !agrees(member, *resolved)) refuse_hint(pointer, info, *node);
    }
  }

  template <class Fields>
  void group(const GroupInfo& info, Fields&& fields) {
    ObjectReader child(reading_,
                       take_object(info),
                       join_pointer(pointer_, info.key),
                       info.reads_text_values || reads_text_);
    fields(child);
    child.finish();
  }

  template <class Section, class Fields>
  void optional_group(const GroupInfo& info, std::optional<Section>& section, Fields&& fields) {
    const JsonNode* object = object_ == nullptr ? nullptr : object_->find(info.key);
    if (object != nullptr && !section) section.emplace();
    if (section) group(info, [&](ObjectReader& child) { fields(child, *section); });
  }

  /// Refuses or warns of what nobody asked for.
  void finish();

 private:
  template <class T>
  struct Plain {
    using Type = T;
  };
  template <class T>
  struct Plain<std::optional<T>> {
    using Type = T;
  };

  // The resolved value if it is of the member's type; the names of an enumeration never are.
  template <class T>
  static const typename Plain<T>::Type* value_for(const Resolved& resolved) {
    using Value = typename Plain<T>::Type;
    if constexpr (std::is_enum_v<Value>) {
      return nullptr;
    } else {
      return std::get_if<Value>(&resolved);
    }
  }

  template <class T>
  static bool agrees(const T& member, const Resolved& resolved) {
    const auto* value = value_for<T>(resolved);
    return value == nullptr || T(*value) == member;
  }

  template <class T>
  void fill(const std::string& pointer,
            const FieldInfo& info,
            const JsonNode* node,
            const Resolved& resolved,
            T& member) {
    const bool changes_nothing = std::is_same_v<T, bool> && agrees(member, resolved);
    if (node == nullptr && changes_nothing) return;
    if (const auto* value = value_for<T>(resolved)) member = *value;
    set_filled_origin(pointer, info, node);
  }

  const JsonNode* take(const FieldInfo& info);
  const JsonNode* take_object(const GroupInfo& info);
  std::optional<Resolved> resolve(const FieldInfo& info) const;
  void leave_unresolved(const std::string& pointer, const FieldInfo& info, const JsonNode& node);
  void refuse_hint(const std::string& pointer, const FieldInfo& info, const JsonNode& node);
  void set_origin(const std::string& pointer, std::string from, const JsonNode* node);
  void set_filled_origin(const std::string& pointer, const FieldInfo& info, const JsonNode* node);
  void judge_unread(const JsonMember& member);

  Reading& reading_;
  const JsonNode* object_;
  std::string pointer_;
  bool reads_text_;
  ValueReader values_;
  std::vector<std::string_view> asked_;         // keys that were read
  std::vector<std::string_view> inapplicable_;  // keys of the section's other types
};

}  // namespace sifr::detail
