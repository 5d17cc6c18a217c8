#include "config_schema/detail/object_reader.hpp"

#include "config_schema/detail/hint_fields.hpp"
#include "config_schema/detail/unused_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sifr::detail {
namespace {

bool has(const std::vector<std::string_view>& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

ObjectReader::ObjectReader(Reading& reading,
                           const JsonNode* object,
                           std::string pointer,
                           bool reads_text)
    : reading_(reading),
      object_(object),
      pointer_(std::move(pointer)),
      reads_text_(reads_text),
      values_(reading.problems, reading.config.notices, reads_text) {}

const JsonNode* ObjectReader::take(const FieldInfo& info) {
  (info.applies ? asked_ : inapplicable_).push_back(info.key);
  return object_ == nullptr ? nullptr : object_->find(info.key);
}

const JsonNode* ObjectReader::take_object(const GroupInfo& info) {
  asked_.push_back(info.key);
  const JsonNode* node = object_ == nullptr ? nullptr : object_->find(info.key);
  if (node == nullptr) return nullptr;
  const std::string pointer = join_pointer(pointer_, info.key);
  set_origin(pointer, "file", node);
  if (node->is(JsonNode::Kind::kObject)) return node;
  reading_.problems.add(
      pointer,
      node->position,
      fmt::format("must be an object such as {}, not {}", info.example, node->described()));
  return nullptr;
}

std::optional<Resolved> ObjectReader::resolve(const FieldInfo& info) const {
  return info.auto_rule == nullptr ? std::nullopt : info.auto_rule->value(reading_.hints);
}

void ObjectReader::leave_unresolved(const std::string& pointer,
                                    const FieldInfo& info,
                                    const JsonNode& node) {
  set_origin(pointer, "auto", &node);
  if (info.auto_is_default) {
    reading_.config.notices.push_back(
        fmt::format("{} is \"auto\" and no hint says what it is: the default is used", pointer));
  } else if (info.auto_rule == nullptr) {
    reading_.problems.add(
        pointer, node.position, "\"auto\" has no meaning for this key; write a value");
  } else {
    reading_.problems.add_unresolved(pointer, node.position, info.auto_rule->hint);
  }
}

void ObjectReader::refuse_hint(const std::string& pointer,
                               const FieldInfo& info,
                               const JsonNode& node) {
  reading_.problems.add(
      pointer,
      node.position,
      fmt::format("the file says {}, but the hint {} says {}; make them agree, or "
                  "write \"auto\" to take the hint",
                  node.described(),
                  info.auto_rule->hint,
                  hint_text(reading_.hints, info.auto_rule->hint)));
}

void ObjectReader::set_origin(const std::string& pointer, std::string from, const JsonNode* node) {
  const Position place = node == nullptr ? Position{} : node->position;
  reading_.config.origins[pointer] = {std::move(from), place.line, place.column};
}

void ObjectReader::set_filled_origin(const std::string& pointer,
                                     const FieldInfo& info,
                                     const JsonNode* node) {
  std::string from = node == nullptr ? "" : "auto";
  if (!info.auto_rule->hint.empty()) {
    from += fmt::format("{}hint {}", from.empty() ? "" : " from ", info.auto_rule->hint);
  }
  set_origin(pointer, std::move(from), node);
}

void ObjectReader::finish() {
  if (object_ == nullptr) return;
  for (const JsonMember& member : object_->members) {
    if (!has(asked_, member.key) && !reading_.problems.is_full()) judge_unread(member);
  }
}

void ObjectReader::judge_unread(const JsonMember& member) {
  const std::string pointer = join_pointer(pointer_, member.key);
  // Which "params" there are is not known where the type could not be read.
  const std::string section = pointer_.substr(0, pointer_.rfind('/'));
  if (!section.empty() && reading_.problems.has(section + "/type")) return;
  if (has(inapplicable_, member.key)) {
    reading_.problems.add(
        pointer,
        member.position,
        fmt::format("the chosen type has no \"{}\"; remove it or choose another type",
                    printable(member.key)));
    return;
  }
  UnusedKeys unused(reading_);
  if (unused.judge(member, pointer)) return;
  std::vector<std::string_view> candidates = asked_;
  candidates.insert(candidates.end(), inapplicable_.begin(), inapplicable_.end());
  unused.refuse_unknown(member, pointer_, std::move(candidates));
}

}  // namespace sifr::detail
