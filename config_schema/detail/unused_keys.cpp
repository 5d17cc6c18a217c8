#include "config_schema/detail/unused_keys.hpp"

#include "config_schema/detail/number_text.hpp"
#include "config_schema/detail/object_reader.hpp"
#include "config_schema/detail/suggestion.hpp"

#include <fmt/format.h>

namespace sifr::detail {
namespace {

using Kind = JsonNode::Kind;

constexpr int kMostUnknown = 100;  // that are told one by one

std::string_view described(KeyType type) {
  switch (type) {
    case KeyType::kBool:
      return "true or false";
    case KeyType::kInteger:
      return "a whole number";
    case KeyType::kNumber:
      return "a number";
    case KeyType::kText:
      return "a string";
    case KeyType::kList:
      return "a list";
    case KeyType::kAny:
      return "a value";
    case KeyType::kBlock:
      return "an object";
  }
  return {};
}

bool is_of_type(const JsonNode& value, KeyType type) {
  switch (type) {
    case KeyType::kBool:
      return value.is(Kind::kBool);
    case KeyType::kInteger:
      return value.is(Kind::kNumber) &&
             read_whole_number(value.text).kind != WholeNumber::Kind::kFraction;
    case KeyType::kNumber:
      return value.is(Kind::kNumber);
    case KeyType::kText:
      return value.is(Kind::kString);
    case KeyType::kList:
      return value.is(Kind::kArray);
    case KeyType::kAny:
      return true;
    case KeyType::kBlock:
      return value.is(Kind::kObject);
  }
  return false;
}

bool is_neutral(const JsonNode& value, const KnownKey& known) {
  switch (value.kind) {
    case Kind::kNull:
      return true;
    case Kind::kBool:
      return value.text == known.neutral;
    case Kind::kNumber:
      return read_double(value.text) == read_double(known.neutral);
    case Kind::kString:
      return known.neutral == value.text || known.neutral == fmt::format("\"{}\"", value.text);
    case Kind::kArray:
      return value.elements.empty() && known.neutral == "[]";
    case Kind::kObject:
      return value.members.empty() && known.neutral != "*";
  }
  return false;
}

}  // namespace

bool UnusedKeys::judge(const JsonMember& member, const std::string& pointer) {
  const KnownKey* known = find_known_key(pointer);
  if (known == nullptr) return false;
  if (member.value.is_auto()) {
    reading_.config.notices.push_back(
        fmt::format("{} is \"auto\": taken as if the key were not there", pointer));
  } else if (known->type == KeyType::kBlock && member.value.is(Kind::kObject)) {
    judge_block(member.value, pointer, *known);
  } else {
    judge_value(member.value, *known);
  }
  return true;
}

void UnusedKeys::judge_value(const JsonNode& value, const KnownKey& known) {
  if (is_neutral(value, known)) return;
  if (has_type(value, known) && !is_off_) report(value, known);
}

bool UnusedKeys::has_type(const JsonNode& value, const KnownKey& known) {
  if (is_of_type(value, known.type)) return true;
  std::string example;
  if (known.type == KeyType::kBlock && !known.text.empty() && known.neutral != "*") {
    example = fmt::format(" such as {}", known.text);
  }
  reading_.problems.add(
      std::string(known.pointer),
      value.position,
      fmt::format("must be {}{}, not {}", described(known.type), example, value.described()));
  return false;
}

void UnusedKeys::judge_block(const JsonNode& block,
                             const std::string& pointer,
                             const KnownKey& known) {
  if (known.neutral == "*") {
    if (!is_off_) report(block, known);
    return;
  }
  bool is_off = is_off_;
  if (!known.neutral.empty()) {
    const JsonNode* gate = block.find(known.neutral);
    const KnownKey* gate_key = find_known_key(fmt::format("{}/{}", pointer, known.neutral));
    const bool is_on = gate != nullptr && gate_key != nullptr && !is_neutral(*gate, *gate_key) &&
                       is_of_type(*gate, gate_key->type) && !gate->is_auto();
    if (is_on && !is_off) report(*gate, *gate_key);
    is_off = true;  // the gate has spoken for the whole block
  }
  judge_children(block, pointer, is_off);
}

void UnusedKeys::judge_children(const JsonNode& block, const std::string& pointer, bool is_off) {
  const bool outer = is_off_;
  is_off_ = is_off;
  for (const JsonMember& child : block.members) {
    if (reading_.problems.is_full()) break;
    if (!judge(child, join_pointer(pointer, child.key))) refuse_unknown(child, pointer, {});
  }
  is_off_ = outer;
}

void UnusedKeys::report(const JsonNode& value, const KnownKey& known) {
  if (known.verdict == Verdict::kQuiet) return;
  if (known.verdict == Verdict::kNoEffect) {
    reading_.config.notices.push_back(
        fmt::format("{} has no effect in sifr: {}", known.pointer, known.text));
  } else {
    reading_.problems.add(std::string(known.pointer),
                          value.position,
                          fmt::format("not supported yet: {}", known.text));
  }
}

void UnusedKeys::refuse_unknown(const JsonMember& member,
                                const std::string& parent,
                                std::vector<std::string_view> candidates) {
  if (member.key.starts_with('_')) return;  // "_comment" and the like
  if (++reading_.unknown_count > kMostUnknown) {
    if (reading_.unknown_count == kMostUnknown + 1)
      tell_unknown(parent, member.position, "more unknown keys, which are not listed");
    return;
  }
  const std::vector<KnownKey> known = known_keys();
  for (const KnownKey& key : known) {
    if (key.parent() == parent) candidates.push_back(key.key());
  }
  std::string text = fmt::format("unknown key \"{}\"", printable(member.key));
  const std::string meant = suggest_key(member.key, parent, candidates);
  if (!meant.empty()) text += fmt::format("; did you mean \"{}\"?", meant);
  const std::string pointer = join_pointer(parent, member.key);
  tell_unknown(pointer, member.position, text);
}

void UnusedKeys::tell_unknown(const std::string& pointer,
                              Position position,
                              const std::string& text) {
  if (reading_.warns_of_unknown) {
    reading_.config.notices.push_back(pointer + ": " + text);
  } else {
    reading_.problems.add(pointer, position, text);
  }
}

}  // namespace sifr::detail
