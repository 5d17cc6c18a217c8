#include "config_schema/detail/used_keys.hpp"

#include "config_schema/detail/problems.hpp"
#include "config_schema/detail/sections.hpp"
#include "config_schema/detail/value_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

namespace sifr::detail {
namespace {

std::string type_text(bool /*value*/) {
  return "boolean";
}
std::string type_text(std::int64_t /*value*/) {
  return "integer";
}
std::string type_text(double /*value*/) {
  return "number";
}
std::string type_text(const std::array<double, 2>& /*value*/) {
  return "two numbers";
}
template <class E>
requires(!kNames<E>.empty()) std::string type_text(E /*value*/) {
  std::string text;
  for (const Name<E>& name : kNames<E>) {
    text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", name.text);
  }
  return text;
}

std::string range_text(const Range& range) {
  std::string text;
  if (std::isfinite(range.min)) {
    text += fmt::format(" {} {}", range.excludes_min ? ">" : "≥", range.min);
  }
  if (std::isfinite(range.max)) {
    const std::string_view comma = text.empty() ? "" : ",";
    text += fmt::format("{} {} {}", comma, range.excludes_max ? "<" : "≤", range.max);
  }
  return text;
}

template <class T>
std::string full_type_text(const T& value, const Range& range) {
  return type_text(value) + range_text(range);
}
template <class T>
std::string full_type_text(const std::optional<T>& /*value*/, const Range& range) {
  return full_type_text(T{}, range) + " or null";
}

// The visitor that lists the fields of default sections.
class UsedKeyLister {
 public:
  UsedKeyLister(std::vector<UsedKey>& keys, std::string pointer)
      : keys_(keys), pointer_(std::move(pointer)) {}

  template <class T>
  void field(const FieldInfo& info, const T& member) {
    keys_.push_back({join_pointer(pointer_, info.key),
                     full_type_text(member, info.range),
                     value_text(member),
                     std::string(info.meaning),
                     info.auto_rule == nullptr ? "" : std::string(info.auto_rule->formula)});
  }

  template <class Fields>
  void group(const GroupInfo& info, Fields&& fields) {
    UsedKeyLister child(keys_, join_pointer(pointer_, info.key));
    fields(child);
  }

  template <class Section, class Fields>
  void optional_group(const GroupInfo& info,
                      const std::optional<Section>& /*section*/,
                      Fields&& fields) {
    const Section section;
    group(info, [&](UsedKeyLister& child) { fields(child, section); });
  }

 private:
  std::vector<UsedKey>& keys_;
  std::string pointer_;
};

std::string_view type_text(KeyType type) {
  switch (type) {
    case KeyType::kBool:
      return "boolean";
    case KeyType::kInteger:
      return "integer";
    case KeyType::kNumber:
      return "number";
    case KeyType::kText:
      return "string";
    case KeyType::kList:
      return "list";
    case KeyType::kAny:
      return "any";
    case KeyType::kBlock:
      return "object";
  }
  return {};
}

std::string_view verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::kQuiet:
      return "read, not used";
    case Verdict::kNoEffect:
      return "no effect (a notice)";
    case Verdict::kNotSupported:
      return "not supported yet (an error)";
  }
  return {};
}

// "/a/b" as `a.b`, which is how people name a key.
std::string dotted(std::string_view pointer) {
  std::string text(pointer.substr(1));
  for (char& c : text) {
    if (c == '/') c = '.';
  }
  return "`" + text + "`";
}

}  // namespace

std::vector<UsedKey> used_keys() {
  std::vector<UsedKey> keys;
  UsedKeyLister lister(keys, "");
  const Config defaults;
  visit_config(lister, defaults);
  return keys;
}

std::string reference_tables() {
  std::string text =
      "## Keys that sifr uses\n\n"
      "| key | type | default | meaning | \"auto\" becomes |\n|---|---|---|---|---|\n";
  for (const UsedKey& key : used_keys()) {
    text += fmt::format("| {} | {} | {} | {} | {} |\n",
                        dotted(key.pointer),
                        key.type,
                        key.default_text,
                        key.meaning,
                        key.formula);
  }
  text +=
      "\n## Keys that sifr knows\n\n"
      "| key | type | neutral value | at another value | why, or what instead "
      "|\n|---|---|---|---|---|\n";
  for (const KnownKey& key : known_keys()) {
    if (key.type == KeyType::kBlock && key.neutral != "*") continue;  // its keys are listed
    const std::string_view neutral = key.type == KeyType::kBlock ? "absent" : key.neutral;
    text += fmt::format("| {} | {} | {} | {} | {} |\n",
                        dotted(key.pointer),
                        type_text(key.type),
                        neutral,
                        verdict_text(key.verdict),
                        key.text);
  }
  return text;
}

}  // namespace sifr::detail
