#include "config_schema/config_error.hpp"

#include <fmt/format.h>

#include <utility>

namespace sifr {
namespace {

std::string joined(const std::string& file_name,
                   const std::vector<ConfigError::Problem>& problems) {
  std::string text;
  for (const ConfigError::Problem& problem : problems) {
    if (!text.empty()) text += '\n';
    text += file_name;
    if (problem.line > 0) text += fmt::format(":{}:{}", problem.line, problem.column);
    if (!problem.pointer.empty()) text += ": " + problem.pointer;
    text += ": " + problem.text;
  }
  return text;
}

}  // namespace

ConfigError::ConfigError(const std::string& file_name, std::vector<Problem> problems)
    : std::runtime_error(joined(file_name, problems)),
      problems_(std::make_shared<const std::vector<Problem>>(std::move(problems))) {}

}  // namespace sifr
