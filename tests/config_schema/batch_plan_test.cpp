#include "config_schema/batch_plan.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <fstream>
#include <iostream>

using sifr::BatchPlan;
using sifr::ConfigError;
using sifr::parse_config;
using sifr::resolve_batch;

namespace {

BatchPlan plan_of(const std::string& json, int world, const sifr::Hints& hints = {}) {
  return resolve_batch(parse_config(json, "ds.json", hints), world);
}

}  // namespace

TEST_CASE("the batch keys are completed as DeepSpeed completes them", "[batch_plan]") {
  std::ifstream file(SIFR_DATA "/batch_cases.json");
  const nlohmann::json cases = nlohmann::json::parse(file)["cases"];
  std::size_t met = 0;
  for (const nlohmann::json& the_case : cases) {
    INFO(the_case.dump());
    const std::string json = the_case["config"].dump();
    const int world = the_case["world"];
    if (the_case.contains("refused")) {
      CHECK_THROWS_AS(plan_of(json, world), ConfigError);
    } else {
      const BatchPlan expected = {the_case["train"], the_case["micro"], the_case["accumulation"]};
      CHECK(plan_of(json, world) == expected);
    }
    ++met;
  }
  std::cout << "batch keys: met " << met << " of " << cases.size() << " cases\n";
}
