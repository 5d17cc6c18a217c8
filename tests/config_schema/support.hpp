#pragma once

#include "config_schema/config.hpp"

#include <algorithm>
#include <string>
#include <vector>

// What the config tests ask of a text: the config, or what is wrong with it.
namespace config_test {

inline sifr::Config parse(const std::string& json, const sifr::Hints& hints = {}) {
  return sifr::parse_config(json, "ds.json", hints);
}

inline std::vector<sifr::ConfigError::Problem> problems_of(const std::string& json,
                                                           const sifr::Hints& hints = {}) {
  try {
    (void)parse(json, hints);
  } catch (const sifr::ConfigError& error) {
    return error.problems();
  }
  return {};
}

/// `line:column: pointer: text` of the only problem; "none", or all of them where there are more.
inline std::string problem_of(const std::string& json, const sifr::Hints& hints = {}) {
  std::string text;
  for (const auto& problem : problems_of(json, hints)) {
    if (!text.empty()) text += "\n";
    text += std::to_string(problem.line) + ":" + std::to_string(problem.column) + ": " +
            problem.pointer + ": " + problem.text;
  }
  return text.empty() ? "none" : text;
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline bool has_notice(const sifr::Config& config, const std::string& part) {
  return std::any_of(config.notices.begin(), config.notices.end(), [&](const std::string& notice) {
    return has(notice, part);
  });
}

}  // namespace config_test
