#include "config_schema/config.hpp"
#include "config_schema/detail/config_file.hpp"
#include "config_schema/detail/hint_fields.hpp"
#include "config_schema/detail/json_tree.hpp"
#include "config_schema/detail/object_reader.hpp"
#include "config_schema/detail/renamed_keys.hpp"
#include "config_schema/detail/sections.hpp"
#include "config_schema/detail/source_text.hpp"
#include "config_schema/detail/validate.hpp"

#include <fmt/format.h>

#include <cstddef>

namespace sifr {
namespace {

constexpr std::size_t kLargestFile = 1 << 20;

bool warns_of_unknown(const detail::JsonNode& root) {
  const detail::JsonNode* own = root.find("sifr");
  const detail::JsonNode* strict = own == nullptr ? nullptr : own->find("strict");
  return strict != nullptr && strict->is(detail::JsonNode::Kind::kString) && strict->text == "warn";
}

}  // namespace

Config parse_config(std::string_view json, const std::string& file_name, const Hints& hints) {
  detail::check_hints(hints);
  detail::Problems problems;
  if (json.size() > kLargestFile) {
    problems.add("", {}, fmt::format("{} bytes are too many for a config", json.size()));
    problems.throw_if_any(file_name);
  }
  const detail::SourceText source(json, problems);
  problems.throw_if_any(file_name);
  detail::JsonNode root = detail::parse_tree(source, problems);

  Config config;
  config.file_name = file_name;
  detail::modernize(root, problems, config.notices);
  // Without an optimizer in the file, a learning rate is enough for one.
  if (root.find("optimizer") == nullptr && hints.lr) config.optimizer.emplace();
  detail::Reading reading = {hints, config, problems, warns_of_unknown(root)};
  detail::ObjectReader reader(reading, &root, "", false);
  detail::visit_config(reader, config);
  reader.finish();
  detail::validate(reading);
  problems.throw_if_any(file_name);
  return config;
}

Config load_config(const std::filesystem::path& file, const Hints& hints) {
  return parse_config(detail::read_config_file(file, kLargestFile + 1), file.string(), hints);
}

ConfigError config_error(const Config& config,
                         const std::string& pointer,
                         const std::string& text) {
  const auto found = config.origins.find(pointer);
  const Origin place = found == config.origins.end() ? Origin{} : found->second;
  return ConfigError(config.file_name, {{pointer, place.line, place.column, text}});
}

}  // namespace sifr
