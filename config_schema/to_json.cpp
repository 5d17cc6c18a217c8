#include "config_schema/config.hpp"
#include "config_schema/detail/sections.hpp"
#include "config_schema/detail/value_text.hpp"

#include <fmt/format.h>

namespace sifr {
namespace detail {

std::string value_text(bool value) {
  return value ? "true" : "false";
}
std::string value_text(std::int64_t value) {
  return fmt::format("{}", value);
}
std::string value_text(double value) {
  return fmt::format("{}", value);
}
std::string value_text(const std::array<double, 2>& value) {
  return fmt::format("[{}, {}]", value[0], value[1]);
}

namespace {

// The visitor that writes each member where the reader would look for it.
class JsonWriter {
 public:
  JsonWriter(std::string& json, std::size_t depth) : json_(json), depth_(depth) {}

  template <class T>
  void field(const FieldInfo& info, const T& member) {
    if (info.applies) add(info.key, value_text(member));
  }

  template <class Fields>
  void group(const GroupInfo& info, Fields&& fields) {
    add(info.key, "{");
    JsonWriter child(json_, depth_ + 1);
    fields(child);
    json_ += fmt::format("\n{:{}}}}", "", 2 * depth_);
  }

  template <class Section, class Fields>
  void optional_group(const GroupInfo& info,
                      const std::optional<Section>& section,
                      Fields&& fields) {
    if (section) group(info, [&](JsonWriter& child) { fields(child, *section); });
  }

 private:
  void add(std::string_view key, std::string_view value) {
    json_ += fmt::format("{}\n{:{}}\"{}\": {}", is_first_ ? "" : ",", "", 2 * depth_, key, value);
    is_first_ = false;
  }

  std::string& json_;
  std::size_t depth_;
  bool is_first_ = true;
};

}  // namespace
}  // namespace detail

std::string to_json(const Config& config) {
  std::string json = "{";
  detail::JsonWriter writer(json, 1);
  detail::visit_config(writer, config);
  return json + "\n}\n";
}

}  // namespace sifr
