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

bool meets(const nlohmann::json& the_case) {
  try {
    const BatchPlan plan = plan_of(the_case["config"].dump(), the_case["world"]);
    if (the_case.contains("refused")) return false;
    return plan == BatchPlan{the_case["train"], the_case["micro"], the_case["accumulation"]};
  } catch (const ConfigError&) {
    return the_case.contains("refused");
  }
}

}  // namespace

TEST_CASE("the batch keys are completed as DeepSpeed completes them", "[batch_plan]") {
  std::ifstream file(SIFR_DATA "/batch_cases.json");
  const nlohmann::json cases = nlohmann::json::parse(file)["cases"];
  std::size_t met = 0;
  for (const nlohmann::json& the_case : cases) {
    INFO(the_case.dump());
    const bool is_met = meets(the_case);
    CHECK(is_met);
    met += is_met ? 1 : 0;
  }
  std::cout << "batch keys: met " << met << " of " << cases.size() << " cases\n";
}

TEST_CASE("a batch that does not fit is told with all its numbers", "[batch_plan][CFG15]") {
  CHECK_THROWS_WITH(plan_of(R"({"train_batch_size": 4, "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 1})",
                            1),
                    "ds.json:1:22: /train_batch_size: does not fit: train_batch_size 4 is not "
                    "train_micro_batch_size_per_gpu 2 × gradient_accumulation_steps 1 × 1 rank");
  CHECK(plan_of(R"({"train_batch_size": 4, "train_micro_batch_size_per_gpu": 2})", 2) ==
        BatchPlan{4, 2, 1});
}

TEST_CASE("a batch that does not fit shows no number that nobody has given", "[batch_plan]") {
  const auto says = [](const char* keys, int world, const std::string& text) {
    CHECK_THROWS_WITH(plan_of(keys, world), Catch::EndsWith("does not fit: " + text));
  };
  says(R"({"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2})",
       2,
       "train_batch_size 7 is no multiple of train_micro_batch_size_per_gpu 2 × 2 ranks, and "
       "gradient_accumulation_steps is not given");
  says(R"({"train_batch_size": 7, "gradient_accumulation_steps": 3})",
       2,
       "train_batch_size 7 is no multiple of gradient_accumulation_steps 3 × 2 ranks, and "
       "train_micro_batch_size_per_gpu is not given");
  says(R"({"train_batch_size": 7})",
       2,
       "train_batch_size 7 is no multiple of 2 ranks, and train_micro_batch_size_per_gpu and "
       "gradient_accumulation_steps are not given");
  says(R"({"train_micro_batch_size_per_gpu": 2e9})",
       2,
       "train_micro_batch_size_per_gpu 2000000000 × gradient_accumulation_steps 1 (not given) × 2 "
       "ranks is more than the 2147483647 samples that a step may have");
}

TEST_CASE("each batch key is a count of int32", "[batch_plan]") {
  CHECK_THROWS_WITH(
      plan_of(R"({"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 9e18})", 1),
      Catch::Contains("/gradient_accumulation_steps: is 9000000000000000000, and must be from 1 to "
                      "2147483647"));
  CHECK_THROWS_AS(plan_of(R"({"train_micro_batch_size_per_gpu": 9e18})", 2), ConfigError);
}

TEST_CASE("a group without ranks is a UsageError", "[batch_plan]") {
  CHECK_THROWS_AS(plan_of(R"({"train_batch_size": 4})", 0), sifr::UsageError);
}
