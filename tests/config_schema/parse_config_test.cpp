#include "support.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

using namespace config_test;
using sifr::Config;

TEST_CASE("an empty config is all defaults", "[parse_config][CFG10]") {
  const Config config = parse("{}");
  CHECK(config.gradient_clipping == 1.0);
  CHECK(config.zero_optimization == sifr::ZeroConfig{});
  CHECK(config.bf16 == sifr::Bf16Config{});
  CHECK(config.sifr == sifr::SifrConfig{});
  CHECK_FALSE(config.optimizer);
  CHECK_FALSE(config.scheduler);
  CHECK(config.origins.empty());
  CHECK(config.notices.empty());
}

TEST_CASE("every key that sifr uses reaches its member", "[parse_config]") {
  const Config config = parse(R"({
    "train_batch_size": 24, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 3,
    "steps_per_print": 10, "gradient_clipping": 0.5, "communication_data_type": "bf16",
    "optimizer": {"type": "adam", "params": {"lr": 3e-4, "betas": [0.8, 0.95], "eps": 1e-6,
      "weight_decay": 0.1, "bias_correction": false, "adam_w_mode": false}},
    "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 100, "warmup_num_steps": 7,
      "warmup_min_ratio": 0.1, "cos_min_ratio": 0.2, "warmup_type": "linear"}},
    "bf16": {"enabled": true, "check_grad_overflow": false},
    "zero_optimization": {"stage": 3, "reduce_bucket_size": 1e3, "allgather_bucket_size": 2e3,
      "overlap_comm": false, "contiguous_gradients": true, "reduce_scatter": true, "sub_group_size": 3e3,
      "stage3_prefetch_bucket_size": 4e3, "stage3_param_persistence_threshold": 5e3,
      "stage3_model_persistence_threshold": 6e3, "stage3_max_live_parameters": 7e3,
      "stage3_max_reuse_distance": 8e3},
    "sifr": {"strict": "warn", "seed": 5, "reduce_at": "micro_batch", "comm_timeout": 1.5,
      "non_finite": "skip", "debug": true}})");
  CHECK(config.train_batch_size == 24);
  CHECK(config.train_micro_batch_size_per_gpu == 4);
  CHECK(config.gradient_accumulation_steps == 3);
  CHECK(config.steps_per_print == 10);
  CHECK(config.gradient_clipping == 0.5);
  CHECK(config.communication_data_type == sifr::WireDType::kBf16);
  CHECK(config.optimizer ==
        sifr::OptimizerConfig{
            sifr::OptimizerType::kAdam, 3e-4, {0.8, 0.95}, 1e-6, 0.1, false, false});
  CHECK_FALSE(config.optimizer->is_decoupled());
  CHECK(config.scheduler == sifr::SchedulerConfig{sifr::SchedulerType::kWarmupCosineLR,
                                                  0,
                                                  {},
                                                  7,
                                                  sifr::WarmupType::kLinear,
                                                  100,
                                                  0.1,
                                                  0.2});
  CHECK(config.bf16 == sifr::Bf16Config{true, false});
  CHECK(config.zero_optimization ==
        sifr::ZeroConfig{3, 1000, 2000, false, true, true, 3000, 4000, 5000, 6000, 7000, 8000});
  CHECK(config.sifr == sifr::SifrConfig{sifr::Strictness::kWarn,
                                        5,
                                        sifr::ReduceAt::kMicroBatch,
                                        1.5,
                                        sifr::NonFinite::kSkip,
                                        true});
  CHECK(config.notices.empty());
  CHECK(config.origins.at("/zero_optimization/stage").line == 9);
}

TEST_CASE("comments and trailing commas are allowed", "[parse_config]") {
  CHECK(parse("{ // one\n \"train_batch_size\": 8, # two\n /* three */ }").train_batch_size == 8);
}

TEST_CASE("a size takes whole numbers in every spelling and nothing else",
          "[parse_config][CFG01]") {
  const auto prefetch = [](const std::string& value, const sifr::Hints& hints = {}) {
    return parse(R"({"zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": )" + value +
                     "}}",
                 hints)
        .zero_optimization.stage3_prefetch_bucket_size;
  };
  CHECK(prefetch("5e8") == 500'000'000);
  CHECK(prefetch("500000000.0") == 500'000'000);
  sifr::Hints hints;
  hints.hidden_size = 4096;
  CHECK(prefetch("\"auto\"", hints) == 15'099'494);
  for (const std::string value :
       {"3774873.6", "-1", "9.3e18", "true", "[1]", "{}", "null", "1e-3"}) {
    INFO(value);
    const std::string problem =
        problem_of(R"({"zero_optimization": {"stage3_prefetch_bucket_size": )" + value + "}}");
    CHECK(has(problem, "1:55: /zero_optimization/stage3_prefetch_bucket_size: must be "));
  }
  CHECK(
      has(problem_of(R"({"zero_optimization": {"reduce_bucket_size": 3774873.6}})"), "3774873.6"));
}

TEST_CASE("numbers in quotes count only where DeepSpeed reads them", "[parse_config]") {
  const Config config = parse(
      R"({"zero_optimization": {"reduce_bucket_size": "500000000", "overlap_comm": "True"}})");
  CHECK(config.zero_optimization.reduce_bucket_size == 500'000'000);
  CHECK(config.zero_optimization.overlap_comm == true);
  CHECK(has_notice(config, "it is read as a number"));
  CHECK(problem_of(R"({"gradient_accumulation_steps": "8"})") ==
        "1:33: /gradient_accumulation_steps: must be a whole number without quotes, not the string "
        "\"8\"");
}

TEST_CASE("all that is wrong is told at once, in the order of the file", "[parse_config]") {
  const auto problems = problems_of(R"({
    "gradient_cliping": 1, "bf16": {"enabled": 2},
    "zero_optimization": {"stage": 4, "stage": 3},
    "optimizer": {"type": "Lion"}})");
  REQUIRE(problems.size() == 5);
  CHECK(problems[0].pointer == "/gradient_cliping");
  CHECK(problems[1].pointer == "/bf16/enabled");
  CHECK(problems[2].text == "must be from 0 to 3, not the number 4");
  CHECK(has(problems[3].text, "twice"));
  CHECK(problems[4].text == "Lion is not supported yet; use one of \"Adam\", \"AdamW\"");
}

TEST_CASE("the error's text has a line for each problem", "[parse_config]") {
  CHECK_THROWS_WITH(parse("{\"train_batch_size\": 0,\n \"steps_per_print\": []}"),
                    "ds.json:1:22: /train_batch_size: must be at least 1, not the number 0\n"
                    "ds.json:2:21: /steps_per_print: must be a whole number, not a list");
}

TEST_CASE("a misspelled key is an error that names the nearest", "[parse_config][CFG04]") {
  CHECK(
      problem_of(R"({"zero_optimization": {"stage": 2, "ofload_optimizer": {"device": "cpu"}}})") ==
      "1:36: /zero_optimization/ofload_optimizer: unknown key \"ofload_optimizer\"; did you mean "
      "\"offload_optimizer\"?");
  CHECK(has(problem_of(R"({"gradient_cliping": 1.0})"), "did you mean \"gradient_clipping\"?"));
  CHECK(has(problem_of(R"({"Bf16": {}})"), "did you mean \"bf16\"?"));
  CHECK(has(problem_of(R"({"bf16": {"loss_scale": 0}})"), "did you mean \"/fp16/loss_scale\"?"));
  CHECK(has(problem_of(R"({"lr": 1})"), "did you mean \"/optimizer/params/lr\"?"));
  CHECK(problem_of(R"({"qqqq": 1})") == "1:2: /qqqq: unknown key \"qqqq\"");
}

TEST_CASE("a key is suggested by its words, by other programs' names and in its section",
          "[parse_config][CFG04]") {
  const auto suggests = [](const std::string& json, const std::string& key) {
    INFO(json);
    CHECK_THAT(problem_of(json), Catch::EndsWith("; did you mean \"" + key + "\"?"));
  };
  suggests(R"({"gradient_clip": 1})", "gradient_clipping");
  suggests(R"({"gradientClip": 1})", "gradient_clipping");
  suggests(R"({"max_grad_norm": 1})", "gradient_clipping");
  suggests(R"({"learning_rate": 1})", "/optimizer/params/lr");
  suggests(R"({"optimizer": {"type": "AdamW", "params": {"learning_rate": 1}}})", "lr");
  suggests(R"({"optimizer": {"type": "AdamW", "lr": 1}})", "/optimizer/params/lr");
  suggests(R"({"optimizer": {"type": "AdamW", "params": {"gradient_clipping": 1}}})",
           "/gradient_clipping");
  suggests(R"({"batch_size": 1})", "train_batch_size");
  suggests(R"({"micro_batch_size_per_gpu": 1})", "train_micro_batch_size_per_gpu");
  suggests(R"({"train_micro_batch_size": 1})", "train_micro_batch_size_per_gpu");
  suggests(R"({"accumulation_steps": 1})", "gradient_accumulation_steps");
  suggests(R"({"warmup_steps": 1})", "/scheduler/params/warmup_num_steps");
  suggests(R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_steps": 1}}})",
           "warmup_num_steps");
  suggests(R"({"stgae": 3})", "/zero_optimization/stage");
  suggests(R"({"zero_optimization": {"max_live": 3}})", "stage3_max_live_parameters");
  suggests(R"({"comm_timeouts": 3})", "/sifr/comm_timeout");
}

TEST_CASE("bf16 and fp16 are suggested for their misspellings", "[parse_config][CFG04]") {
  const auto suggestion = [](const std::string& key) {
    return problem_of("{\"" + key + "\": {\"enabled\": true}}");
  };
  for (const char* key :
       {"bf_16", "BF-16", "fb16", "bfp16", "b16", "bfloat_16", "enable_bf16", "bf16_enabled"})
    CHECK_THAT(suggestion(key), Catch::EndsWith("did you mean \"bf16\"?"));
  for (const char* key : {"fp_16", "fp61", "float16", "half", "use_fp16"})
    CHECK_THAT(suggestion(key), Catch::EndsWith("did you mean \"fp16\"?"));
}

TEST_CASE("a lenient config warns of each misspelled key", "[parse_config][CFG04]") {
  const Config config = parse(R"({"gradient_cliping": 1.0, "sifr": {"strict": "warn"},
    "zero_optimization": {"ofload_optimizer": {"device": "cpu"}}})");
  CHECK(config.notices.size() == 2);
  CHECK(has_notice(config, "/gradient_cliping: unknown key"));
  CHECK(has_notice(config, "offload_optimizer"));
}

TEST_CASE("keys that start with an underscore are comments", "[parse_config]") {
  CHECK(parse(R"({"_comment": "x", "bf16": {"_why": [1]}})").notices.empty());
}

TEST_CASE("a section of another type shows the form it must have", "[parse_config][CFG05]") {
  CHECK(problem_of(R"({"zero_optimization": {"offload_optimizer": true}})") ==
        "1:45: /zero_optimization/offload_optimizer: must be an object such as {\"device\": "
        "\"cpu\"}, not true");
  CHECK(has(problem_of(R"({"bf16": true})"), "such as {\"enabled\": true}, not true"));
  CHECK(has(problem_of(R"({"optimizer": null})"), "not null"));
  CHECK(has(problem_of(R"({"scheduler": "WarmupLR"})"), "must be an object such as {\"type\""));
}

TEST_CASE("cpu_offload stands for offload_optimizer", "[parse_config][CFG05]") {
  CHECK(has(problem_of(R"({"zero_optimization": {"cpu_offload": true}})"),
            "/zero_optimization/offload_optimizer/device: not supported yet"));
  const Config off = parse(R"({"zero_optimization": {"cpu_offload": false}})");
  REQUIRE(off.notices.size() == 1);
  CHECK(has(off.notices[0], "outdated"));
  CHECK(has(
      problem_of(
          R"({"zero_optimization": {"cpu_offload": true, "offload_optimizer": {"device": "nvme"}}})"),
      "\"cpu_offload\" is another name of \"offload_optimizer\""));
}

TEST_CASE("other names of a key are read as the key", "[parse_config]") {
  CHECK(parse(R"({"zero_optimization": {"max_live_parameters": 7}})")
            .zero_optimization.stage3_max_live_parameters == 7);
  CHECK(parse(R"({"bfloat16": {"enabled": true}})").bf16.enabled);
  CHECK(parse(R"({"zero_optimization": true})").zero_optimization.stage == 1);
  CHECK(parse(R"({"zero_optimization": false})").zero_optimization.stage == 0);
  CHECK(has(
      problem_of(
          R"({"zero_optimization": {"max_live_parameters": 7, "stage3_max_live_parameters": 7}})"),
      "remove one"));
}

TEST_CASE("a file that cannot be read is a ConfigError", "[parse_config]") {
  CHECK_THROWS_WITH(sifr::load_config("/no/such/file.json"),
                    "/no/such/file.json: cannot be read: No such file or directory");
  CHECK_THROWS_WITH(sifr::load_config("/"), Catch::Contains("is a directory"));
  CHECK_THROWS_WITH(sifr::load_config("/dev/zero"),
                    "/dev/zero: is a device, and every rank reads the config: write it to a file");
  const TemporaryFolder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(sifr::load_config(folder / "pipe"),
                    Catch::Contains("pipe: is a pipe, and every rank reads the config"));
  write_file(folder / "ds.json", R"({"train_batch_size": 3})");
  CHECK(sifr::load_config(folder / "ds.json").train_batch_size == 3);
}

TEST_CASE("an error about a loaded key has its place", "[parse_config]") {
  const Config config = parse("{\n \"steps_per_print\": 3}");
  CHECK(std::string(sifr::config_error(config, "/steps_per_print", "no").what()) ==
        "ds.json:2:21: /steps_per_print: no");
  CHECK(std::string(sifr::config_error(config, "/bf16", "no").what()) == "ds.json: /bf16: no");
}
