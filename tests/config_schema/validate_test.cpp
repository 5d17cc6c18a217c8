#include "support.hpp"

#include <catch2/catch.hpp>

using namespace config_test;

TEST_CASE("what sifr does not have is refused unless it is switched off", "[validate]") {
  CHECK(
      has(problem_of(
              R"({"zero_optimization": {"offload_param": {"device": "nvme", "nvme_path": "/x"}}})"),
          "/zero_optimization/offload_param/device: not supported yet"));
  CHECK(
      parse(R"({"zero_optimization": {"offload_param": {"device": "none", "pin_memory": false}}})")
          .notices.empty());
  CHECK(has(problem_of(R"({"fp16": {"enabled": true, "loss_scale": 0}})"),
            "1:22: /fp16/enabled: fp16 is not supported yet"));
  CHECK(parse(R"({"fp16": {"enabled": false, "initial_scale_power": 20}})").notices.empty());
  CHECK(has(problem_of(R"({"zero_optimization": {"zenflow": {"topk_ratio": 0.1}}})"),
            "not supported yet"));
  CHECK(has(problem_of(R"({"sifr": {"reductions": "library"}})"), "not supported yet"));
}

TEST_CASE("a sum over ranks is refused by name, not taken for the mean", "[validate][API05]") {
  CHECK(has(problem_of(R"({"gradient_allreduce_op": "sum"})"),
            "/gradient_allreduce_op: not supported yet: only \"mean\""));
  CHECK(parse(R"({"gradient_allreduce_op": "mean"})").notices.empty());
}

TEST_CASE("a loss scale that is none is refused by name, with fp16 on or off",
          "[validate][CFG06][CFG07]") {
  const auto fp16 = [](const std::string& keys) {
    return problem_of("{\"fp16\": {" + keys + "}}");
  };
  CHECK(has(fp16("\"loss_scale\": 1e999"), "/fp16/loss_scale: number overflow"));
  CHECK(has(fp16("\"loss_scale\": \"nan\""), "/fp16/loss_scale: must be a number"));
  CHECK(has(fp16("\"loss_scale\": true"), "/fp16/loss_scale: must be a number, not true"));
  CHECK(
      has(fp16("\"loss_scale_window\": true"), "/fp16/loss_scale_window: must be a whole number"));
  for (const char* keys : {"\"enabled\": true, \"loss_scale\": -1",
                           "\"enabled\": true, \"loss_scale_window\": 0",
                           "\"enabled\": true, \"min_loss_scale\": 0"})
    CHECK(has(fp16(keys), "/fp16/enabled: fp16 is not supported yet"));
  CHECK(parse(R"({"fp16": {"loss_scale": 128, "loss_scale_window": 0}})").notices.empty());
}

TEST_CASE("offload of one thing is not taken for offload of another", "[validate][CFG09]") {
  for (const char* what : {"offload_optimizer", "offload_param"}) {
    const std::string problem = problem_of(std::string(R"({"zero_optimization": {"stage": 3, ")") +
                                           what + R"(": {"device": "cpu", "pin_memory": true}}})");
    CHECK(has(problem, std::string("/zero_optimization/") + what + "/device: not supported yet"));
    CHECK(problem.find('\n') == std::string::npos);
  }
}

TEST_CASE("a number that the update's fp32 cannot hold is refused at its place", "[validate]") {
  for (const char* key : {"lr", "eps", "weight_decay"}) {
    const std::string problem = problem_of(std::string(R"({"optimizer": {"type": "Adam",
      "params": {")") + key + R"(": 1e39}}})");
    INFO(problem);
    CHECK(has(problem, std::string("/optimizer/params/") + key + ": must be from 0 to 3.4"));
    CHECK(problem.starts_with("2:"));
  }
  for (const char* key : {"warmup_min_lr", "warmup_max_lr"}) {
    const std::string problem = problem_of(std::string(R"({"scheduler": {"type": "WarmupLR",
      "params": {")") + key + R"(": 1e39}}})");
    CHECK(has(problem, std::string("/scheduler/params/") + key + ": must be from 0 to 3.4"));
  }
}

TEST_CASE("a key without effect is a notice unless its value is the neutral one", "[validate]") {
  CHECK(parse(R"({"wall_clock_breakdown": false})").notices.empty());
  CHECK(has_notice(parse(R"({"wall_clock_breakdown": true})"),
                   "/wall_clock_breakdown has no effect"));
  CHECK(has_notice(parse(R"({"zero_optimization": {"contiguous_gradients": false}})"),
                   "contiguous_gradients"));
  CHECK(has(problem_of(R"({"wall_clock_breakdown": "yes"})"), "must be true or false"));
}

TEST_CASE("a progress line every 0 steps is none", "[validate]") {
  CHECK_FALSE(parse(R"({"steps_per_print": 0})").steps_per_print);
}

TEST_CASE("an option of recomputation is told to be without effect", "[validate][CFG14]") {
  CHECK(has_notice(parse(R"({"activation_checkpointing": {"cpu_checkpointing": true}})"),
                   "cpu_checkpointing has no effect"));
}

TEST_CASE("options of a stage count at that stage", "[validate][CFG08]") {
  CHECK(has_notice(parse(R"({"prescale_gradients": true, "zero_optimization": {"stage": 1}})"),
                   "prescale_gradients"));
  CHECK(parse(R"({"sifr": {"reduce_at": "boundary"}, "zero_optimization": {"stage": 1}})")
            .sifr.reduce_at == sifr::ReduceAt::kBoundary);
  CHECK(has(problem_of(R"({"sifr": {"reduce_at": "boundary"}, "zero_optimization": {"stage": 2}})"),
            "1:24: /sifr/reduce_at"));
  CHECK(
      has_notice(parse(R"({"sifr": {"reduce_at": "boundary"}, "communication_data_type": "bf16"})"),
                 "/communication_data_type has no effect"));
}

TEST_CASE("an optimizer that is not there is refused by name", "[validate][OPT08]") {
  for (const std::string type : {"Lamb", "OneBitAdam"}) {
    CHECK(has(problem_of(R"({"optimizer": {"type": ")" + type + "\"}}"),
              type + " is not supported yet"));
  }
}

TEST_CASE("a scheduler has the parameters of its type", "[validate]") {
  const auto scheduler = [](const std::string& type, const std::string& params) {
    return problem_of(R"({"scheduler": {"type": ")" + type + R"(", "params": {)" + params + "}}}");
  };
  CHECK(has(scheduler("WarmupLR", "\"total_num_steps\": 5"), "has no \"total_num_steps\""));
  CHECK(has(scheduler("WarmupDecayLR", ""), "WarmupDecayLR needs total_num_steps"));
  CHECK(has(scheduler("WarmupCosineLR", "\"total_num_steps\": 5, \"warmup_max_lr\": 1"),
            "has no \"warmup_max_lr\""));
  CHECK(has(scheduler("WarmupLR", "\"warmup_num_steps\": 0"), "must be at least 1"));
  CHECK(has(scheduler("WarmupLR", "\"warmup_type\": \"bogus\""),
            "must be one of \"log\", \"linear\""));
  CHECK(has(scheduler("OneCycle", "\"cycle_min_lr\": 1"), "OneCycle is not supported yet"));
  CHECK(has(scheduler("warmuplr", ""), "did you mean \"WarmupLR\"?"));
  CHECK(has(problem_of(R"({"scheduler": {"params": {}}})"), "needs a \"type\""));
  CHECK(has(problem_of(R"({"optimizer": {"params": {"lr": 1}}})"), "needs a \"type\""));
  CHECK(
      has_notice(parse(R"({"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 9}},
      "optimizer": {"type": "AdamW", "params": {"lr": 0.1}}})"),
                 "rises to 0.001"));
}
