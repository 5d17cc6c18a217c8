#include "support.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

// Runs over a folder of ds_config files from elsewhere, where the environment names one.

namespace {

using sifr::Config;
using sifr::ConfigError;
using sifr::Hints;

const std::map<std::string, std::string> kHints = {{"micro_batch", "4"},
                                                   {"accumulation", "2"},
                                                   {"lr", "1e-4"},
                                                   {"betas", "0.9,0.999"},
                                                   {"eps", "1e-8"},
                                                   {"weight_decay", "0"},
                                                   {"max_grad_norm", "1"},
                                                   {"warmup_steps", "10"},
                                                   {"total_steps", "100"},
                                                   {"hidden_size", "4096"},
                                                   {"precision", "bf16"}};

// Gives the hints that the file asks for, as a trainer does that fills every "auto".
Config load(const std::filesystem::path& file) {
  Hints hints;
  try {
    return sifr::load_config(file);
  } catch (const ConfigError& error) {
    for (const auto& problem : error.problems()) {
      if (!problem.hint.empty())
        sifr::parse_hint(problem.hint + "=" + kHints.at(problem.hint), hints);
    }
  }
  return sifr::load_config(file, hints);
}

// One line of the table; true if the file was accepted.
bool try_file(const std::filesystem::path& file) {
  std::cout << file.filename().string() << ": ";
  try {
    const Config config = load(file);
    std::cout << "accepted, " << config.notices.size() << " notices\n";
    CHECK(sifr::to_json(config_test::parse(sifr::to_json(config))) == sifr::to_json(config));
    return true;
  } catch (const ConfigError& error) {
    const auto& first = error.problems().front();
    std::cout << "refused, " << error.problems().size() << " problems, the first: " << first.line
              << ":" << first.column << ": " << first.pointer << ": " << first.text << "\n";
    CHECK(first.line > 0);
    return false;
  }
}

}  // namespace

TEST_CASE("real configs load, or are refused with a place", "[real_configs]") {
  const char* folder = std::getenv("SIFR_DS_CONFIGS");
  if (folder == nullptr) {
    std::cout << "[skipped] SIFR_DS_CONFIGS names no folder of configs\n";
    return;
  }
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.insert(entry.path());
  }
  int accepted = 0;
  for (const std::filesystem::path& file : files)
    accepted += try_file(file) ? 1 : 0;
  std::cout << "real configs: " << accepted << " of " << files.size() << " accepted\n";
}
