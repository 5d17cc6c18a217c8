// What step() computes around the sums: weights of micro-batches, clipping, gradients that are not
// finite, counters and the schedule. The optimizer is nearly plain gradient descent with lr 1, so
// that a gradient g moves a weight by g to 1e-5.
#include "tests/engine/small_engine.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <tuple>

using Catch::Contains;

namespace sifr::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

int any_stage() {
  return GENERATE(0, 1, 2, 3);
}

// How far one step moves the first weight of "a", whose gradient on each rank and micro-batch is
// gradient(rank, micro), under options(rank, micro).
double moved_by(int ranks,
                const SmallConfig& config,
                const std::function<float(int rank, int micro)>& gradient,
                const std::function<StepOptions(int rank, int micro)>& options = {}) {
  const auto body = [&](Engine& engine, SmallModel& model) {
    for (int micro = 0; micro < config.accumulation; ++micro) {
      model.add(engine, "a", gradient(engine.rank(), micro));
      engine.step(options ? options(engine.rank(), micro) : StepOptions{});
    }
    const auto values = masters(engine, "a.weight");
    return engine.rank() == 0 ? std::to_string(SmallModel::initial_value(0) - values[0]) : "";
  };
  return std::stod(on_ranks(ranks, config, body, SmallModel({{"a", 1}})));
}

TEST_CASE("the update is by the mean over ranks and micro-batches", "[engine][PRE07][PRE08]") {
  const SmallConfig config{.stage = any_stage(), .accumulation = 2};
  CHECK(moved_by(1, config, [](int, int) { return 1.0F; }) == Approx(1).epsilon(1e-4));
  CHECK(moved_by(2, config, [](int rank, int micro) {
          return static_cast<float>(1 + rank + 2 * micro);
        }) == Approx(2.5).epsilon(1e-4));
}

TEST_CASE("weights of micro-batches make it the mean over tokens", "[engine][GRD16]") {
  // One token with gradient 4, three whose summed gradient is 0.
  const SmallConfig config{.stage = any_stage(), .accumulation = 2};
  const auto gradient = [](int, int micro) { return micro == 0 ? 4.0F : 0.0F; };
  const auto weights = [](int, int micro) { return StepOptions{.weight = micro == 0 ? 1 : 3}; };
  const int ranks = GENERATE(1, 2);
  CHECK(moved_by(ranks, config, gradient, weights) == Approx(1).epsilon(1e-4));
  CHECK(moved_by(ranks, config, gradient) == Approx(2).epsilon(1e-4));
}

TEST_CASE("weights that add up to 1 make it the sum over ranks", "[engine][API05]") {
  const auto gradient = [](int rank, int) { return static_cast<float>(1 + 2 * rank); };
  const auto half = [](int, int) { return StepOptions{.weight = 0.5}; };
  CHECK(moved_by(2, {.stage = any_stage()}, gradient, half) == Approx(4).epsilon(1e-4));
}

TEST_CASE("forward's weight counts unless step says otherwise", "[engine][GRD16]") {
  struct Weighing final : SmallModel {
    Loss forward(Engine&, const Batch& batch) override { return {6, batch.as<double>()}; }
  };
  auto contexts = quiet_contexts(1);
  Weighing model;
  auto engine = Engine::initialize(
      model, make_config({.stage = any_stage()}), {.context = &contexts.front()});
  engine.forward(3.0);
  StepReport report = engine.step();
  CHECK(report.weight == 3);
  CHECK(report.loss == 2);
  engine.forward(3.0);
  report = engine.step({.weight = 4, .loss = 8});
  CHECK(report.weight == 4);
  CHECK(report.loss == 2);
  CHECK(engine.step().weight == 1);  // forward's is used up
}

TEST_CASE("gradients are clipped by their norm, never enlarged", "[engine][GRD01]") {
  const bool is_bf16 = GENERATE(false, true);
  for (const auto& [clip, first, second] :
       {std::tuple{1.0, 0.6, 0.8}, {10.0, 3.0, 4.0}, {0.0, 3.0, 4.0}}) {
    const SmallConfig config{.stage = any_stage(), .is_bf16 = is_bf16, .clip = clip};
    auto contexts = quiet_contexts(1);
    SmallModel model({{"a", 1}, {"b", 1}});
    auto engine = Engine::initialize(model, make_config(config), {.context = &contexts.front()});
    model.add(engine, "b", 4);
    model.add(engine, "a", 3);
    CHECK(engine.step().gradient_norm == 5);
    CHECK(1 - masters(engine, "a.weight")[0] == Approx(first).epsilon(1e-4));
    CHECK(1 - masters(engine, "b.weight")[0] == Approx(second).epsilon(1e-4));
  }
}

TEST_CASE("the norm is that of the mean, at every boundary anew", "[engine][GRD05][GRD09][GRD14]") {
  const SmallConfig config{
      .stage = any_stage(), .overlap = GENERATE(false, true), .accumulation = 4};
  const auto body = [&](Engine& engine, SmallModel& model) {
    for (int step = 0; step < 3; ++step) {
      double norm = 0;
      for (const float gradient : {1.0F, 2.0F, 3.0F, 6.0F}) {
        model.add(engine, "a", gradient * static_cast<float>(step + 1));
        norm = engine.step().gradient_norm;
      }
      SIFR_CHECK_RANK(norm == 3.0 * (step + 1));
    }
    return std::string();
  };
  CHECK(on_ranks(GENERATE(1, 3), config, body, SmallModel({{"a", 1}, {"unused", 5}})).empty());
}

TEST_CASE("all backward passes before a boundary that the trainer sets count", "[engine][GRD06]") {
  auto contexts = quiet_contexts(1);
  SmallModel model({{"a", 1}});
  auto engine = Engine::initialize(
      model, make_config({.stage = any_stage()}), {.context = &contexts.front()});
  CHECK(engine.is_boundary());
  for (const float gradient : {1.0F, 2.0F, 4.0F}) {
    model.add(engine, "a", gradient);
    engine.step({.weight = gradient == 4.0F ? 1 : 0, .boundary = gradient == 4.0F});
  }
  CHECK(1 - masters(engine, "a.weight")[0] == Approx(7).epsilon(1e-4));
  CHECK(engine.step({.boundary = false}).outcome == Outcome::kAccumulated);
}

TEST_CASE("fp32 gradients reach the optimizer without a bf16 rounding", "[engine][GRD21]") {
  const SmallConfig config{.stage = any_stage()};
  CHECK(moved_by(2, config, [](int, int) { return 1 + 0x1p-12F; }) ==
        Approx(1.000244140625).epsilon(5e-5));
}

TEST_CASE("bf16 weights move by the small steps of their masters", "[engine][PRE15]") {
  // Eight times 2^-10: each alone is below half of what bf16 resolves at 1.
  auto contexts = quiet_contexts(1);
  SmallModel model({{"a", 1}});
  auto engine = Engine::initialize(
      model, make_config({.stage = any_stage(), .is_bf16 = true}), {.context = &contexts.front()});
  for (int step = 0; step < 8; ++step) {
    model.add(engine, "a", 0x1p-10F);
    engine.step();
  }
  const Weights a = engine.weights(model.unit("a"));
  CHECK(to_float(a.data<bfloat16>(0)[0]) == 0.9921875F);
}

TEST_CASE("a gradient that is not finite stops fp32 with the parameter's name",
          "[engine][PRE01][PRE05]") {
  const float value = GENERATE(as<float>{}, kInfinity, std::numeric_limits<float>::quiet_NaN());
  const SmallConfig config{.stage = any_stage(), .accumulation = 2, .clip = 1};
  const auto body = [&](bool is_bad) {
    return on_ranks(3, config, [&](Engine& engine, SmallModel& model) {
      if (is_bad) {
        const std::string before = engine.weights_hash();
        model.run(engine, 1);
        engine.step();
        model.add(engine, "b", engine.rank() == 2 ? value : 1);
        const std::string error = error_of([&] { engine.step(); });
        SIFR_CHECK_RANK(
            error.starts_with("NumericsError: step 1: the gradient of 'b.weight' is not finite: "
                              "weights are untouched; lower the learning rate, check the data"));
        SIFR_CHECK_RANK(engine.weights_hash() == before);
      }
      for (int micro = 0; micro < 4; ++micro) {  // and the engine stays usable
        model.run(engine, 0.5F);
        engine.step();
      }
      return engine.weights_hash();
    });
  };
  CHECK(body(true) == body(false));
}

TEST_CASE("a skipped step counts as a step and not as an update", "[engine][PRE05][PRE06][API06]") {
  const bool is_bf16 = GENERATE(true, false);
  const SmallConfig config{.stage = any_stage(),
                           .is_bf16 = is_bf16,
                           .accumulation = 4,
                           .clip = 1,
                           .sifr = is_bf16 ? "" : R"("non_finite": "skip",)"};
  const std::string clean = on_ranks(2, config, [&](Engine& engine, SmallModel& model) {
    for (int micro = 0; micro < 4; ++micro) {
      model.run(engine, 0.5F);
      engine.step();
    }
    return engine.weights_hash();
  });
  CHECK(on_ranks(2, config, [&](Engine& engine, SmallModel& model) {
          StepReport report;
          for (int micro = 0; micro < 8; ++micro) {
            const bool is_bad = micro == 1 && engine.rank() == 1;
            model.run(engine, is_bad ? kInfinity : 0.5F);
            report = engine.step();
            if (micro != 3) continue;
            SIFR_CHECK_RANK(report.outcome == Outcome::kSkipped);
            SIFR_CHECK_RANK(std::isinf(report.gradient_norm));
          }
          SIFR_CHECK_RANK(report.outcome == Outcome::kUpdated);
          SIFR_CHECK_RANK(report.micro_batches == 8);
          SIFR_CHECK_RANK(report.step == 2);
          SIFR_CHECK_RANK(report.updates == 1);
          SIFR_CHECK_RANK(report.skipped == 1);
          return engine.weights_hash();
        }) == clean);
}

TEST_CASE("bf16 without its overflow check stops as fp32 does", "[engine][PRE06]") {
  Config config = make_config({.stage = any_stage(), .is_bf16 = true});
  config.bf16.check_grad_overflow = false;
  auto contexts = quiet_contexts(1);
  SmallModel model;
  auto engine = Engine::initialize(model, config, {.context = &contexts.front()});
  model.add(engine, "c", kInfinity);
  CHECK_THAT(error_of([&] { engine.step(); }),
             Catch::StartsWith("NumericsError: ") && Contains("'c.weight'"));
}

TEST_CASE("the schedule advances with updates only", "[engine][API06][LRS09]") {
  const SmallConfig config{
      .stage = any_stage(),
      .top =
          R"("scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 0.4, "warmup_num_steps": 4, "warmup_type": "linear"}},)",
      .sifr = R"("non_finite": "skip",)"};
  auto contexts = quiet_contexts(1);
  SmallModel model;
  auto engine = Engine::initialize(model, make_config(config), {.context = &contexts.front()});
  const auto step = [&](float gradient, const StepOptions& options = {}) {
    model.run(engine, gradient);
    return engine.step(options);
  };
  step(1);  // the first two updates are at the minimum
  const double first = engine.lr();
  CHECK(step(1).lr == first);
  const double second = engine.lr();
  CHECK(second > first);
  const StepReport skipped = step(kInfinity);
  CHECK(skipped.lr == second);
  CHECK(engine.lr() == second);
  CHECK(step(1, {.lr = 7}).lr == 7);
  CHECK(engine.lr() > second);  // an lr of one's own is an update of the schedule too
}

TEST_CASE("the learning rate depends on neither ranks nor micro-batches", "[engine][LRS10]") {
  const auto rates = [](int ranks, std::int64_t accumulation) {
    const SmallConfig config{
        .accumulation = accumulation,
        .top = R"("scheduler": {"type": "WarmupDecayLR", "params": {"warmup_max_lr": 0.4,
          "warmup_num_steps": 4, "total_num_steps": 20}},)"};
    std::vector<double> all;
    const auto body = [&](Engine& engine, SmallModel& model) {
      for (std::int64_t micro = 0; micro < 10 * accumulation; ++micro) {
        model.run(engine, 1);
        const StepReport report = engine.step();
        if (engine.rank() == 0 && report.outcome == Outcome::kUpdated) all.push_back(report.lr);
      }
    };
    for (const std::string& error : errors_of_ranks(ranks, config, body))
      CHECK(error == "");
    return all;
  };
  const std::vector<double> alone = rates(1, 1);
  CHECK(alone.size() == 10);
  CHECK(alone[6] != alone[9]);
  for (const int ranks : {1, 2, 4})
    CHECK(rates(ranks, 4) == alone);
}

TEST_CASE("a loss that is not finite is reported as such", "[engine]") {
  const SmallConfig config{.stage = any_stage()};
  CHECK(on_ranks(2, config, [](Engine& engine, SmallModel& model) {
          model.run(engine, 1);
          const double loss = engine.rank() == 1 ? NAN : 1.0;
          SIFR_CHECK_RANK(std::isnan(engine.step({.loss = loss}).loss));
          model.run(engine, 1);
          SIFR_CHECK_RANK(engine.step({.loss = 3}).loss == 3);
          SIFR_CHECK_RANK(std::isnan(engine.context().sum(loss)));
          SIFR_CHECK_RANK(engine.context().sum(0x1p-60) == 0x1p-59);
          return std::string();
        }).empty());
}

}  // namespace
}  // namespace sifr::test
