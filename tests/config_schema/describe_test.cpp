#include "support.hpp"

#include <catch2/catch.hpp>

using namespace config_test;
using sifr::Config;

namespace {

void check_round_trip(const Config& config) {
  const Config again = parse(sifr::to_json(config));
  CHECK(again.train_batch_size == config.train_batch_size);
  CHECK(again.train_micro_batch_size_per_gpu == config.train_micro_batch_size_per_gpu);
  CHECK(again.gradient_accumulation_steps == config.gradient_accumulation_steps);
  CHECK(again.steps_per_print == config.steps_per_print);
  CHECK(again.gradient_clipping == config.gradient_clipping);
  CHECK(again.communication_data_type == config.communication_data_type);
  CHECK(again.optimizer == config.optimizer);
  CHECK(again.scheduler == config.scheduler);
  CHECK(again.bf16 == config.bf16);
  CHECK(again.fp16 == config.fp16);
  CHECK(again.zero_optimization == config.zero_optimization);
  CHECK(again.sifr == config.sifr);
  CHECK(sifr::to_json(again) == sifr::to_json(config));
}

}  // namespace

TEST_CASE("a config written as JSON reads back the same", "[describe]") {
  check_round_trip(parse("{}"));
  Config config = parse(R"({"train_batch_size": 24, "gradient_clipping": 0.1,
    "optimizer": {"type": "Adam", "params": {"lr": 0.30000000000000004, "betas": [0.8, 0.95]}},
    "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 10, "warmup_num_steps": 3}},
    "bf16": {"enabled": true}, "communication_data_type": "fp32", "steps_per_print": 7,
    "zero_optimization": {"stage": 2, "overlap_comm": false, "reduce_bucket_size": 5e8},
    "sifr": {"non_finite": "stop", "comm_timeout": 1e-3, "debug": true}})");
  check_round_trip(config);
  config.scheduler->type = sifr::SchedulerType::kWarmupCosineLR;
  check_round_trip(config);
}

TEST_CASE("the start screen tells what was set from what is a default", "[describe][CFG10]") {
  sifr::Hints hints;
  hints.hidden_size = 4096;
  hints.lr = 3e-4;
  const std::string text = sifr::describe(parse(R"({"train_micro_batch_size_per_gpu": 2,
    "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}})",
                                                hints));
  CHECK(has(text, "ds.json:\n  train_micro_batch_size_per_gpu: 2 samples\n"));
  CHECK(has(text, "reduce_bucket_size: 16777216 elements  (auto from hint hidden_size)\n"));
  CHECK(has(text, "lr: 0.0003  (hint lr)\n"));
  CHECK(has(text, "(default) train_batch_size: from the other batch keys"));
  CHECK(has(text, "gradient_clipping: 1"));
  CHECK_FALSE(has(text, "scheduler"));
}

TEST_CASE("the start screen has words for what is unset or without limit, and units",
          "[describe]") {
  const std::string text = sifr::describe(parse(R"({"optimizer": {"type": "AdamW"},
    "scheduler": {"type": "WarmupLR"}, "zero_optimization": {"stage": 3}})"));
  CHECK_FALSE(has(text, "null"));
  CHECK_FALSE(has(text, "9223372036854775807"));
  for (const char* told : {"steps_per_print: none",
                           "communication_data_type: the gradient's own",
                           "warmup_max_lr: the optimizer's lr",
                           "overlap_comm: true",
                           "non_finite: skip in bf16, stop in fp32",
                           "stage3_model_persistence_threshold: unlimited",
                           "comm_timeout: 600 s",
                           "allgather_bucket_size: 500000000 elements"}) {
    INFO(told);
    CHECK(has(text, told));
  }
}

TEST_CASE("every key of the effective config is on the start screen", "[describe][CFG10]") {
  const Config config = parse(R"({"zero_optimization": {"stage": 3}})");
  const std::string text = sifr::describe(config);
  for (const char* key : {"stage: 3",
                          "sub_group_size: 1000000000",
                          "stage3_max_reuse_distance: 1000000000",
                          "check_grad_overflow: true",
                          "comm_timeout: 600",
                          "seed: 1234"}) {
    CHECK(has(text, key));
  }
}
