// The engine against the plain reference, bit for bit, at every stage.
#include "tests/engine/odd_model.hpp"
#include "tests/engine/small_engine.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <map>
#include <utility>

namespace sifr::test {
namespace {

constexpr const char* kAdamW =
    R"({"type": "AdamW", "params": {"lr": 0.01, "betas": [0.9, 0.95], "weight_decay": 0.1}})";

struct Case {
  SmallConfig config;
  int ranks = 3;
  bool has_unequal_weights = false;  // of ranks and micro-batches

  [[nodiscard]] double weight(int rank, std::int64_t micro) const {
    if (!has_unequal_weights) return 1;
    const auto above = static_cast<double>(2 * rank - (ranks - 1));
    const auto later = static_cast<double>(2 * micro - (config.accumulation - 1));
    return 1.25 + above / 8 + later / 4;
  }
};

Case make_case(SmallConfig config, int ranks = 3) {
  config.accumulation = 3;
  config.clip = 0.3;
  if (config.optimizer == SmallConfig().optimizer) config.optimizer = kAdamW;
  return {.config = std::move(config), .ranks = ranks};
}

using Masters = std::map<std::string, std::vector<float>>;

struct Result {
  Masters masters;
  std::vector<StepReport> reports;
  std::string hash;
};

Result train(const Case& c, int steps) {
  auto contexts = quiet_contexts(c.ranks);
  Result result;
  run_ranks(contexts, [&](Context& context) {
    OddModel model;
    auto engine = Engine::initialize(model, make_config(c.config), {.context = &context});
    std::vector<StepReport> reports;
    for (std::int64_t step = 0; step < steps; ++step) {
      for (std::int64_t micro = 0; micro < c.config.accumulation; ++micro) {
        model.run(engine, {context.rank(), step, micro});
        const StepReport report =
            engine.step({.weight = c.weight(context.rank(), micro), .loss = 1.0});
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

ReferenceOptions reference_options(const Config& config) {
  const OptimizerConfig& optimizer = config.optimizer.value();
  return {.clip = config.gradient_clipping,
          .beta1 = optimizer.betas[0],
          .beta2 = optimizer.betas[1],
          .weight_decay = optimizer.weight_decay,
          .is_decoupled = optimizer.is_decoupled(),
          .has_bias_correction = optimizer.bias_correction,
          .is_wire_bf16 = config.communication_data_type == WireDType::kBf16,
          .reduces_at_boundary = config.sifr.reduce_at == ReduceAt::kBoundary};
}

void compare_with_reference(const Case& c) {
  constexpr int kSteps = 4;
  const SmallConfig& small = c.config;
  double total_weight = 0;
  for (int rank = 0; rank < c.ranks; ++rank) {
    for (std::int64_t micro = 0; micro < small.accumulation; ++micro)
      total_weight += c.weight(rank, micro);
  }
  ReferenceZero reference =
      OddModel::make_reference(reference_options(make_config(small)), small.is_bf16);
  std::vector<ReferenceReport> reports;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const ReferenceGradients gradients =
        OddModel::reference_gradients(reference, c.ranks, step, small.accumulation, small.is_bf16);
    reports.push_back(reference.step(gradients, 0.01, total_weight));
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
      INFO("stage " << small.stage << ", " << c.ranks << " ranks, " << odd.name);
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
          "[engine][GRD08][GRD05][GRD10][GRD13][GRD14][GRD15][OPT09][ST316]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const int ranks = GENERATE(1, 2, 3, 4);
  const bool is_bf16 = GENERATE(false, true);
  compare_with_reference(make_case({.stage = stage, .is_bf16 = is_bf16}, ranks));
}

TEST_CASE("Adam with L2 and without bias correction matches the plain reference", "[engine]") {
  const std::string type = GENERATE(R"("Adam", "params": {"adam_w_mode": false,)",
                                    R"("AdamW", "params": {"bias_correction": false,)",
                                    R"("Adam", "params": {"bias_correction": false,)");
  SmallConfig config{.stage = GENERATE(0, 1, 2, 3), .is_bf16 = GENERATE(false, true)};
  config.optimizer =
      R"({"type": )" + type + R"("lr": 0.01, "betas": [0.9, 0.95], "weight_decay": 0.1}})";
  compare_with_reference(make_case(config));
}

TEST_CASE("unequal weights of ranks and micro-batches match the plain reference",
          "[engine][GRD16]") {
  Case c = make_case({.stage = GENERATE(0, 1, 2, 3), .is_bf16 = GENERATE(false, true)});
  c.has_unequal_weights = true;
  compare_with_reference(c);
}

TEST_CASE("tiny buckets, a small window and overlap change no bit",
          "[engine][PAR01][COM01][COM02]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const std::string zero = GENERATE(
      R"("reduce_bucket_size": 300, "stage3_prefetch_bucket_size": 0, "stage3_max_live_parameters": 0, "stage3_param_persistence_threshold": 0,)",
      R"("reduce_bucket_size": 1031, "stage3_prefetch_bucket_size": 1500, "stage3_max_live_parameters": 6000, "stage3_param_persistence_threshold": 300,)",
      R"("reduce_bucket_size": 6000, "stage3_prefetch_bucket_size": 100000, "stage3_max_reuse_distance": 1000,)");
  compare_with_reference(make_case({.stage = stage, .overlap = true, .zero = zero}));
}

TEST_CASE("reducing at the boundary matches its own reference", "[engine]") {
  compare_with_reference(make_case({.stage = GENERATE(0, 1),
                                    .is_bf16 = GENERATE(false, true),
                                    .sifr = R"("reduce_at": "boundary",)"}));
}

TEST_CASE("gradients travel in the wire's dtype", "[engine][PRE12][PRE13]") {
  compare_with_reference(
      make_case({.stage = GENERATE(0, 1, 2, 3), .top = R"("communication_data_type": "bf16",)"}));
}

}  // namespace
}  // namespace sifr::test
