#include "config_schema/hints.hpp"

#include "config_schema/batch_plan.hpp"
#include "support.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <set>

using namespace config_test;
using sifr::Config;
using sifr::Hints;
using sifr::parse_hint;

namespace {

// A config that leaves everything to the trainer, as Hugging Face's documentation shows it.
constexpr const char* kAllAuto = R"({
  "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
  "gradient_accumulation_steps": "auto", "gradient_clipping": "auto",
  "bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"},
  "optimizer": {"type": "AdamW",
    "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}},
  "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_min_lr": "auto",
    "warmup_max_lr": "auto", "warmup_num_steps": "auto", "total_num_steps": "auto"}},
  "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto",
    "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"}})";

Hints hints_of(const std::vector<std::string>& assignments) {
  Hints hints;
  for (const std::string& assignment : assignments)
    parse_hint(assignment, hints);
  return hints;
}

}  // namespace

TEST_CASE("every auto is resolved by its hint", "[hints]") {
  const Config config = parse(kAllAuto,
                              hints_of({"micro_batch=4",
                                        "accumulation=2",
                                        "lr=3e-4",
                                        "betas=0.9,0.95",
                                        "eps=1e-6",
                                        "weight_decay=0.1",
                                        "max_grad_norm=0.5",
                                        "warmup_steps=10",
                                        "total_steps=100",
                                        "hidden_size=768",
                                        "precision=bf16"}));
  CHECK(sifr::resolve_batch(config, 3) == sifr::BatchPlan{24, 4, 2});
  CHECK(config.gradient_clipping == 0.5);
  CHECK(config.bf16.enabled);
  CHECK_FALSE(config.fp16.enabled);
  CHECK(config.optimizer ==
        sifr::OptimizerConfig{sifr::OptimizerType::kAdamW, 3e-4, {0.9, 0.95}, 1e-6, 0.1});
  CHECK(config.scheduler->warmup_min_lr == 0);
  CHECK(config.scheduler->warmup_max_lr == 3e-4);
  CHECK(config.scheduler->warmup_num_steps == 10);
  CHECK(config.scheduler->total_num_steps == 100);
  CHECK(config.zero_optimization.reduce_bucket_size == 589'824);
  CHECK(config.zero_optimization.stage3_prefetch_bucket_size == 530'841);
  CHECK(config.zero_optimization.stage3_param_persistence_threshold == 7'680);
  CHECK(config.origins.at("/optimizer/params/lr").from == "auto from hint lr");
}

TEST_CASE("every auto that is left is told at once, with the hint that resolves it",
          "[hints][CFG02]") {
  std::set<std::string> left;
  for (const auto& problem : problems_of(kAllAuto)) {
    CHECK(problem.line > 0);
    CHECK(has(problem.text, "give the hint " + problem.hint));
    left.insert(problem.pointer + " " + problem.hint);
  }
  CHECK(left == std::set<std::string>{
                    "/train_batch_size micro_batch",
                    "/train_micro_batch_size_per_gpu micro_batch",
                    "/gradient_accumulation_steps accumulation",
                    "/gradient_clipping max_grad_norm",
                    "/bf16/enabled precision",
                    "/fp16/enabled precision",
                    "/optimizer/params/lr lr",
                    "/optimizer/params/betas betas",
                    "/optimizer/params/eps eps",
                    "/optimizer/params/weight_decay weight_decay",
                    "/scheduler/params/warmup_num_steps warmup_steps",
                    "/scheduler/params/total_num_steps total_steps",
                    "/zero_optimization/reduce_bucket_size hidden_size",
                    "/zero_optimization/stage3_prefetch_bucket_size hidden_size",
                    "/zero_optimization/stage3_param_persistence_threshold hidden_size",
                });
}

TEST_CASE("an auto without a formula is refused, or its default is told", "[hints][CFG02]") {
  CHECK(has(problem_of(R"({"steps_per_print": "auto"})"), "\"auto\" has no meaning for this key"));
  CHECK(has(problem_of(R"({"zero_optimization": {"stage": "auto"}})"), "no meaning"));
  const Config config = parse(R"({"zero_optimization": {"stage": 2, "overlap_comm": "auto",
    "stage3_prefetch_bucket_size": "auto", "offload_optimizer": "auto"}})");
  CHECK_FALSE(config.zero_optimization.overlap_comm);
  CHECK(config.notices.size() == 3);
}

TEST_CASE("a warm-up's auto ends at the optimizer's lr", "[hints]") {
  const std::string scheduler =
      R"("scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 9000, "warmup_max_lr": "auto"}})";
  const std::string optimizer = R"(, "optimizer": {"type": "AdamW", "params": {"lr": 0.25}})";
  CHECK(parse("{" + scheduler + optimizer + "}").scheduler->warmup_max_lr == 0.25);
  CHECK(has(problem_of("{" + scheduler + "}"),
            "/scheduler/params/warmup_max_lr: \"auto\" is not resolved"));
}

TEST_CASE("a hint fills a key that the file does not have", "[hints][CFG12]") {
  const Config config = parse(
      "{}", hints_of({"micro_batch=4", "accumulation=2", "precision=bf16", "max_grad_norm=2"}));
  CHECK(sifr::resolve_batch(config, 1) == sifr::BatchPlan{8, 4, 2});
  CHECK(config.bf16.enabled);
  CHECK(config.gradient_clipping == 2);
  CHECK(config.origins.at("/gradient_accumulation_steps").from == "hint accumulation");
  CHECK_FALSE(config.optimizer);
}

TEST_CASE("a hint that the file contradicts is an error with both values", "[hints][CFG12]") {
  const auto problems =
      problems_of(R"({"gradient_accumulation_steps": 1, "bf16": {"enabled": false},
    "optimizer": {"type": "AdamW", "params": {"lr": 0.1, "betas": [0.9, 0.999]}}})",
                  hints_of({"accumulation=2", "precision=bf16", "lr=0.1", "betas=0.9,0.95"}));
  REQUIRE(problems.size() == 3);
  CHECK(has(problems[0].text, "the file says the number 1, but the hint accumulation says 2"));
  CHECK(problems[1].pointer == "/bf16/enabled");
  CHECK(has(problems[2].text, "0.9,0.95"));
}

TEST_CASE("an lr hint is enough for an optimizer", "[hints]") {
  const Config config = parse("{}", hints_of({"lr=3e-4", "weight_decay=0.1"}));
  CHECK(config.optimizer ==
        sifr::OptimizerConfig{sifr::OptimizerType::kAdamW, 3e-4, {0.9, 0.999}, 1e-8, 0.1});
}

TEST_CASE("a hint that does not fit is a UsageError", "[hints]") {
  Hints hints;
  for (const char* bad : {"lr",
                          "lr=",
                          "lr=x",
                          "lr=-1",
                          "lr=1e999",
                          "micro_batch=0",
                          "micro_batch=1.5",
                          "hidden_size=1e10",
                          "lr=1e39",
                          "betas=0.9",
                          "betas=0.9,1",
                          "precision=fp8",
                          "=1"}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_hint(bad, hints), sifr::UsageError);
  }
  CHECK_THROWS_WITH(parse_hint("micro_batches=4", hints),
                    Catch::Contains("did you mean micro_batch?"));
  CHECK_THROWS_WITH(parse_hint("x=4", hints),
                    Catch::Contains("the hints are micro_batch, accumulation, lr"));
  parse_hint("micro_batch=5e0", hints);
  CHECK(hints.micro_batch == 5);
}

TEST_CASE("a program's own hint is checked too", "[hints]") {
  Hints hints;
  hints.lr = std::nan("");
  CHECK_THROWS_AS(parse("{}", hints), sifr::UsageError);
  hints.lr.reset();
  hints.precision = "half";
  CHECK_THROWS_WITH(parse("{}", hints), Catch::Contains("precision is fp32, bf16 or fp16"));
}
