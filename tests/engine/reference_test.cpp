// The engine against the plain reference, bit for bit, at every stage.
#include "tests/engine/odd_model.hpp"
#include "tests/support/run_ranks.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <cstring>
#include <map>
#include <mutex>

namespace sifr::test {
namespace {

struct Case {
  int stage = 0;
  int ranks = 3;
  std::int64_t accumulation = 3;
  bool is_bf16 = false;
  bool overlap = false;
  std::string zero = {};  // further keys of zero_optimization
  std::string top = {};   // further keys at top level
  std::string sifr = {};
};

Config make_config(const Case& c) {
  return parse_config(
      fmt::format(
          R"({{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": {}, "gradient_clipping": 0.3,
    "optimizer": {{"type": "AdamW", "params": {{"lr": 0.01, "betas": [0.9, 0.95], "weight_decay": 0.1}}}},
    "bf16": {{"enabled": {}}}, {} "zero_optimization": {{{} "stage": {}, "overlap_comm": {}}}, "sifr": {{{}}}}})",
          c.accumulation,
          c.is_bf16,
          c.top,
          c.zero,
          c.stage,
          c.overlap,
          c.sifr),
      "test.json");
}

using Masters = std::map<std::string, std::vector<float>>;

struct Result {
  Masters masters;
  std::vector<StepReport> reports;
  std::string hash;
};

Result train(const Case& c, int steps) {
  auto contexts = Context::threads(c.ranks, {.log = [](Level, std::string_view) {}});
  Result result;
  run_ranks(contexts, [&](Context& context) {
    OddModel model;
    auto engine = Engine::initialize(model, make_config(c), {.context = &context});
    std::vector<StepReport> reports;
    for (std::int64_t step = 0; step < steps; ++step) {
      for (std::int64_t micro = 0; micro < c.accumulation; ++micro) {
        model.run(engine, {context.rank(), step, micro});
        const StepReport report = engine.step({.loss = 1.0});
        if (report.outcome != Outcome::kAccumulated) reports.push_back(report);
      }
    }
    Masters masters;
    engine.export_weights(
        [&](const WeightPiece& piece) {
          std::vector<float>& values = masters[std::string(piece.name)];
          SIFR_CHECK_RANK(static_cast<std::int64_t>(values.size()) == piece.first);
          for (std::int64_t i = 0; i < piece.values.count; ++i) {
            values.push_back(piece.values.dtype == DType::kFloat32
                                 ? piece.values.as<float>()[i]
                                 : to_float(piece.values.as<bfloat16>()[i]));
          }
        },
        ExportAs::kMasters);
    const std::string hash = engine.weights_hash();
    if (context.rank() == 0) result = {std::move(masters), std::move(reports), hash};
  });
  return result;
}

void compare_with_reference(const Case& c) {
  constexpr int kSteps = 4;
  ReferenceOptions options{.clip = 0.3, .beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.1};
  options.reduces_at_boundary = c.sifr.find("boundary") != std::string::npos;
  options.is_wire_bf16 = c.top.find("bf16") != std::string::npos;
  ReferenceZero reference = OddModel::make_reference(options, c.is_bf16);
  std::vector<ReferenceReport> reports;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    reports.push_back(reference.step(
        OddModel::reference_gradients(reference, c.ranks, step, c.accumulation, c.is_bf16), 0.01));
  }
  const Result result = train(c, kSteps);
  REQUIRE(result.reports.size() == reports.size());
  int clipped = 0;
  for (std::size_t s = 0; s < reports.size(); ++s) {
    CHECK(result.reports[s].gradient_norm == reports[s].gradient_norm);
    clipped += reports[s].gradient_norm > 0.3 ? 1 : 0;
  }
  CHECK(clipped > 0);
  CHECK(clipped < kSteps);
  std::size_t number = 0;
  for (const OddUnit& unit : OddModel::units()) {
    for (const OddParameter& odd : unit.parameters) {
      INFO("stage " << c.stage << ", " << c.ranks << " ranks, " << odd.name);
      const std::vector<float>& expected =
          odd.trainable ? reference.master(number) : reference.weight(number);
      const std::vector<float>& got = result.masters.at(odd.name);
      REQUIRE(got.size() == expected.size());
      CHECK((expected.empty() ||
             std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)) == 0));
      ++number;
    }
  }
}

TEST_CASE("every stage matches the plain reference exactly",
          "[engine][GRD08][GRD05][GRD10][GRD13][GRD14][GRD15]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const int ranks = GENERATE(1, 2, 3, 4);
  const bool is_bf16 = GENERATE(false, true);
  compare_with_reference({.stage = stage, .ranks = ranks, .is_bf16 = is_bf16});
}

TEST_CASE("tiny buckets, a small window and overlap change no bit",
          "[engine][PAR01][COM01][COM02]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const std::string zero = GENERATE(
      R"("reduce_bucket_size": 300, "stage3_prefetch_bucket_size": 0, "stage3_max_live_parameters": 0, "stage3_param_persistence_threshold": 0,)",
      R"("reduce_bucket_size": 1031, "stage3_prefetch_bucket_size": 1500, "stage3_max_live_parameters": 6000, "stage3_param_persistence_threshold": 300,)",
      R"("reduce_bucket_size": 6000, "stage3_prefetch_bucket_size": 100000, "stage3_max_reuse_distance": 1000,)");
  compare_with_reference({.stage = stage, .overlap = true, .zero = zero});
}

TEST_CASE("reducing at the boundary matches its own reference", "[engine]") {
  compare_with_reference({.stage = GENERATE(0, 1),
                          .is_bf16 = GENERATE(false, true),
                          .sifr = R"("reduce_at": "boundary")"});
}

TEST_CASE("gradients travel in the wire's dtype", "[engine][PRE12][PRE13]") {
  compare_with_reference(
      {.stage = GENERATE(0, 1, 2, 3), .top = R"("communication_data_type": "bf16",)"});
}

}  // namespace
}  // namespace sifr::test
