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

TEST_CASE("a batch that does not fit is told with all its numbers", "[batch_plan][CFG15]") {
  CHECK_THROWS_WITH(
      plan_of(R"({"train_batch_size": 4, "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 1})",
              1),
      "ds.json:1:22: /train_batch_size: does not fit: train_batch_size 4 = "
      "train_micro_batch_size_per_gpu 2 × gradient_accumulation_steps 1 × 1 ranks is not true");
  CHECK(plan_of(R"({"train_batch_size": 4, "train_micro_batch_size_per_gpu": 2})", 2) ==
        BatchPlan{4, 2, 1});
}

TEST_CASE("the product of a batch must fit 64 bits", "[batch_plan]") {
  const std::string json =
      R"({"train_micro_batch_size_per_gpu": 9e18, "gradient_accumulation_steps": 9e18})";
  CHECK_THROWS_AS(plan_of(json, 1), ConfigError);
  CHECK_THROWS_AS(plan_of(R"({"train_micro_batch_size_per_gpu": 9e18})", 2), ConfigError);
}

TEST_CASE("a group without ranks is a UsageError", "[batch_plan]") {
  CHECK_THROWS_AS(plan_of(R"({"train_batch_size": 4})", 0), sifr::UsageError);
}
