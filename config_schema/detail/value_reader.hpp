#pragma once

#include "config_schema/detail/field_info.hpp"
#include "config_schema/detail/json_tree.hpp"
#include "config_schema/detail/problems.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sifr::detail {

/// Turns one JSON value into a typed one. What does not fit is told to `problems` and leaves the
/// member as it was; the result says whether it was read.
class ValueReader {
 public:
  /// `reads_text`: "8" stands for 8 and "true" for true, with a notice.
  ValueReader(Problems& problems, std::vector<std::string>& notices, bool reads_text)
      : problems_(problems), notices_(notices), reads_text_(reads_text) {}

  bool read(const JsonNode& node, const std::string& pointer, const FieldInfo& info, bool& member);
  bool read(const JsonNode& node,
            const std::string& pointer,
            const FieldInfo& info,
            std::int64_t& member);
  bool read(const JsonNode& node,
            const std::string& pointer,
            const FieldInfo& info,
            double& member);
  bool read(const JsonNode& node,
            const std::string& pointer,
            const FieldInfo& info,
            std::array<double, 2>& member);

  /// null is unset.
  template <class T>
  bool read(const JsonNode& node,
            const std::string& pointer,
            const FieldInfo& info,
            std::optional<T>& member) {
    if (node.is(JsonNode::Kind::kNull)) {
      member.reset();
      return true;
    }
    T value{};
    if (!read(node, pointer, info, value)) return false;
    member = value;
    return true;
  }

  /// A named value.
  template <class E>
  requires(!kNames<E>.empty()) bool read(const JsonNode& node,
                                         const std::string& pointer,
                                         const FieldInfo& info,
                                         E& member) {
    std::array<std::string_view, kNames<E>.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i)
      names[i] = kNames<E>[i].text;
    const std::optional<std::size_t> index = read_choice(node, pointer, info, names);
    if (index) member = kNames<E>[*index].value;
    return index.has_value();
  }

 private:
  std::optional<std::size_t> read_choice(const JsonNode& node,
                                         const std::string& pointer,
                                         const FieldInfo& info,
                                         std::span<const std::string_view> names);
  std::optional<std::string> number_text(const JsonNode& node,
                                         const std::string& pointer,
                                         std::string_view wanted);
  bool is_in_range(const JsonNode& node,
                   const std::string& pointer,
                   const FieldInfo& info,
                   double value);
  bool refuse(const JsonNode& node, const std::string& pointer, const std::string& wanted);

  Problems& problems_;
  std::vector<std::string>& notices_;
  bool reads_text_;
};

}  // namespace sifr::detail
