#include "config_schema/config.hpp"
#include "config_schema/detail/problems.hpp"
#include "config_schema/detail/sections.hpp"
#include "config_schema/detail/value_text.hpp"

#include <fmt/format.h>

#include <limits>
#include <type_traits>
#include <vector>

namespace sifr {
namespace detail {
namespace {

constexpr std::size_t kWidth = 100;

// A member's value as people say it: with its unit, and no number or null that stands for a word.
template <class T>
std::string told(const FieldInfo& info, const T& value) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    if (value == std::numeric_limits<std::int64_t>::max()) return "unlimited";
  }
  return value_text(value) + (info.unit.empty() ? "" : fmt::format(" {}", info.unit));
}
template <class T>
std::string told(const FieldInfo& info, const std::optional<T>& value) {
  return value ? told(info, *value) : std::string(info.unset);
}

// The visitor that prints a section: what was set, one a line; then the defaults, filled up to the
// line's width; then the sections in it.
class Describer {
 public:
  Describer(const Config& config, std::string pointer, std::size_t depth)
      : config_(config), pointer_(std::move(pointer)), indent_(2 * depth, ' ') {}

  template <class T>
  void field(const FieldInfo& info, const T& member) {
    if (!info.applies) return;
    const std::string text = fmt::format("{}: {}", info.key, told(info, member));
    const auto origin = config_.origins.find(join_pointer(pointer_, info.key));
    if (origin == config_.origins.end()) {
      defaults_.push_back(text);
    } else {
      const std::string& from = origin->second.from;
      set_ += indent_ + text + (from == "file" ? "" : fmt::format("  ({})", from)) + "\n";
    }
  }

  template <class Fields>
  void group(const GroupInfo& info, Fields&& fields) {
    const std::size_t depth = indent_.size() / 2 + 1;
    Describer child(config_, join_pointer(pointer_, info.key), depth);
    fields(child);
    groups_ += fmt::format("{}{}:\n{}", indent_, info.key, child.text());
  }

  template <class Section, class Fields>
  void optional_group(const GroupInfo& info,
                      const std::optional<Section>& section,
                      Fields&& fields) {
    if (section) group(info, [&](Describer& child) { fields(child, *section); });
  }

  [[nodiscard]] std::string text() const {
    std::string lines = set_;
    std::string line;
    for (const std::string& entry : defaults_) {
      if (!line.empty() && line.size() + 2 + entry.size() > kWidth) {
        lines += line + ",\n";
        line.clear();
      }
      line += line.empty() ? indent_ + "(default) " + entry : ", " + entry;
    }
    if (!line.empty()) lines += line + "\n";
    return lines + groups_;
  }

 private:
  const Config& config_;
  std::string pointer_;
  std::string indent_;
  std::string set_;
  std::vector<std::string> defaults_;
  std::string groups_;
};

}  // namespace
}  // namespace detail

std::string describe(const Config& config) {
  detail::Describer describer(config, "", 1);
  detail::visit_config(describer, config);
  return config.file_name + ":\n" + describer.text();
}

}  // namespace sifr
