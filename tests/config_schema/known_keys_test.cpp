#include "config_schema/detail/known_keys.hpp"

#include "config_schema/detail/used_keys.hpp"
#include "support.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <unistd.h>

using namespace config_test;
using sifr::detail::known_keys;
using sifr::detail::KnownKey;
using sifr::detail::used_keys;

namespace {

std::set<std::string> used_pointers() {
  std::set<std::string> pointers;
  for (const auto& key : used_keys()) {
    for (std::string pointer = key.pointer; !pointer.empty(); pointer.resize(pointer.rfind('/'))) {
      pointers.insert(pointer);
    }
  }
  return pointers;
}

// {"a": {"b": VALUE}} for the pointer /a/b.
std::string config_with(const KnownKey& key, const std::string& value) {
  std::string json = value;
  std::string pointer(key.pointer);
  while (!pointer.empty()) {
    json = "{\"" + pointer.substr(pointer.rfind('/') + 1) + "\": " + json + "}";
    pointer.resize(pointer.rfind('/'));
  }
  return json;
}

// With the types that their sections need.
std::string config_with_types(const KnownKey& key, const std::string& value) {
  std::string json = config_with(key, value);
  for (const std::string section : {"optimizer", "scheduler"}) {
    const std::string start = "{\"" + section + "\": {";
    const std::string type = section == "optimizer" ? "AdamW" : "WarmupLR";
    if (json.starts_with(start)) json.insert(start.size(), "\"type\": \"" + type + "\", ");
  }
  return json;
}

}  // namespace

TEST_CASE("the tables name each key once, below a section that exists", "[known_keys]") {
  std::set<std::string> parents = used_pointers();
  parents.insert("");
  for (const KnownKey& key : known_keys()) {
    INFO(key.pointer);
    CHECK(parents.count(std::string(key.parent())) == 1);
    CHECK(parents.insert(std::string(key.pointer)).second);
    const bool has_gate =
        key.type == sifr::detail::KeyType::kBlock && !key.neutral.empty() && key.neutral != "*";
    if (has_gate)
      CHECK(sifr::detail::find_known_key(std::string(key.pointer) + "/" +
                                         std::string(key.neutral)) != nullptr);
  }
}

TEST_CASE("every known key loads silently at its neutral value and at null", "[known_keys]") {
  for (const KnownKey& key : known_keys()) {
    if (key.type == sifr::detail::KeyType::kBlock) continue;
    INFO(key.pointer);
    CHECK(parse(config_with_types(key, std::string(key.neutral))).notices.empty());
    CHECK(parse(config_with_types(key, "null")).notices.empty());
  }
}

TEST_CASE("a key of the wrong type is refused where its type is known", "[known_keys]") {
  for (const KnownKey& key : known_keys()) {
    const bool takes_anything = key.type == sifr::detail::KeyType::kAny || key.neutral == "*";
    if (takes_anything) continue;
    INFO(key.pointer);
    const bool is_list = key.type == sifr::detail::KeyType::kList;
    CHECK(has(problem_of(config_with_types(key, is_list ? "1" : "[1]")), "must be "));
  }
}

TEST_CASE("configs of DeepSpeed's checks get the verdict that the table says", "[known_keys]") {
  const auto cases = nlohmann::json::parse(read_file(SIFR_DATA "/verdict_cases.json"));
  int same = 0;
  for (const auto& [name, the_case] : cases["cases"].items()) {
    INFO(name << ": " << the_case.dump());
    const bool is_accepted = problems_of(the_case["config"].dump()).empty();
    CHECK((is_accepted ? "accepts" : "refuses") == the_case["sifr"].get<std::string>());
    const bool is_same = the_case["sifr"] == the_case["deepspeed"];
    CHECK(is_same != the_case.contains("why"));
    same += is_same ? 1 : 0;
  }
  std::cout << "verdicts: met " << cases["cases"].size() << " of " << cases["of"] << " cases, "
            << same << " as DeepSpeed; left out: " << cases["left_out"].get<std::string>() << "\n";
}

TEST_CASE("the reference page says what the structs and tables say", "[known_keys][CFG10]") {
  const std::string page = read_file(SIFR_DOCS "/config.md");
  const std::string tables = sifr::detail::reference_tables();
  const bool is_same = page.ends_with(tables);
  CHECK(is_same);
  if (is_same) return;
  const auto copy = std::filesystem::temp_directory_path() /
                    ("sifr_config_tables." + std::to_string(getpid()) + ".md");
  std::ofstream(copy) << tables;
  std::cout << "the tables as they must end docs/config.md: " << copy << "\n";
}
