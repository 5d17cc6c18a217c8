#include "tests/engine/small_engine.hpp"

#include <catch2/catch.hpp>

#include <optional>

using Catch::Contains;
using Catch::StartsWith;

namespace sifr::test {
namespace {

constexpr int kRanks = 3;

float first_value(Engine& engine, const SmallModel& model) {
  const Weights a = engine.weights(model.unit("a"));
  return a.data<float>(0)[0];
}

SmallConfig any_config() {
  const int stage = GENERATE(0, 1, 2, 3);
  const bool overlap = GENERATE(false, true);
  const std::string zero = GENERATE("", R"("stage3_prefetch_bucket_size": 0,
    "stage3_max_live_parameters": 0, "stage3_param_persistence_threshold": 0,)");
  return {.stage = stage, .overlap = overlap, .zero = zero};
}

// What a unit's weights are after `updates` equal updates of all its elements.
bool holds(Engine& engine, const SmallModel& model, const std::string& unit, float first) {
  const Weights weights = engine.weights(model.unit(unit));
  return weights.data<float>(0)[0] == first && weights.data<float>(0)[299] != first;
}

std::string train_with(const SmallConfig& config, const RankBody& between) {
  return on_ranks(kRanks, config, [&](Engine& engine, SmallModel& model) {
    for (int step = 0; step < 3; ++step) {
      if (between) between(engine, model);
      model.run(engine, 0.5F);
      engine.step();
    }
    if (between) between(engine, model);
    return engine.weights_hash();
  });
}

TEST_CASE("streamed evaluation reads units forward and backward, and training goes on as before",
          "[engine][ST305]") {
  const SmallConfig config = any_config();
  const auto evaluate = [](Engine& engine, SmallModel& model) {
    const Evaluation evaluation = engine.evaluate();
    SIFR_CHECK_RANK(engine.is_evaluating());
    for (const char* order : {"abc", "cba", "bbca"}) {
      const float first = first_value(engine, model);
      for (const char* unit = order; *unit != '\0'; ++unit)
        SIFR_CHECK_RANK(holds(engine, model, {unit, 1}, first));
    }
  };
  CHECK(train_with(config, evaluate) == train_with(config, {}));
}

TEST_CASE("evaluation is possible between the micro-batches of a step", "[engine]") {
  SmallConfig config = any_config();
  config.accumulation = 2;
  const auto train = [&](bool evaluates) {
    return on_ranks(kRanks, config, [&](Engine& engine, SmallModel& model) {
      for (int micro = 0; micro < 4; ++micro) {
        model.run(engine, 0.5F);
        engine.step();
        if (!evaluates) continue;
        const Evaluation evaluation = engine.evaluate();
        model.read(engine);
      }
      return engine.weights_hash();
    });
  };
  CHECK(train(true) == train(false));
}

TEST_CASE("with whole weights ranks run different code", "[engine][API08]") {
  const SmallConfig config = any_config();
  const auto generate = [](Engine& engine, SmallModel& model) {
    const Evaluation evaluation = engine.evaluate(Residency::kWhole);
    if (engine.rank() != 1) return;
    const float first = first_value(engine, model);
    for (int token = 0; token < 5; ++token) {
      const Weights nested = engine.weights(model.unit("b"));
      for (const char* unit : {"c", "b", "a"})
        SIFR_CHECK_RANK(holds(engine, model, unit, first));
    }
  };
  CHECK(train_with(config, generate) == train_with(config, {}));
}

TEST_CASE("whole weights are given back when the evaluation has ended", "[engine][MEM07]") {
  const SmallConfig config{.stage = GENERATE(0, 1, 2, 3)};
  const auto body = [](Engine& engine, SmallModel& model) {
    for (int round = 0; round < 20; ++round) {
      const std::int64_t before = engine.memory().total(Tier::kDevice).now;
      {
        const Evaluation evaluation = engine.evaluate(Residency::kWhole);
        model.read(engine);
      }
      model.run(engine, 1);
      engine.step();
      SIFR_CHECK_RANK(engine.memory().total(Tier::kDevice).now == before);
    }
  };
  for (const std::string& error : errors_of_ranks(2, config, body))
    CHECK(error == "");
}

TEST_CASE("one rank alone may stream what the others leave out, in the agreed order",
          "[engine][API08]") {
  const SmallConfig config = any_config();
  CHECK(train_with(config, [](Engine& engine, SmallModel& model) {
          const Evaluation evaluation = engine.evaluate();
          if (engine.rank() == 0) model.read(engine);
        }) == train_with(config, {}));
  const auto backwards = [](Engine& engine, SmallModel& model) {
    {
      const Evaluation evaluation = engine.evaluate();
      if (engine.rank() == 0) static_cast<void>(engine.weights(model.unit("c")));
      if (engine.rank() == 0) static_cast<void>(engine.weights(model.unit("b")));
    }
    engine.step();
  };
  for (const std::string& error : errors_of_ranks(kRanks, config, backwards)) {
    INFO(error);
    CHECK_THAT(error, StartsWith("CommError: ") && Contains("b") && Contains("rank 1"));
  }
}

TEST_CASE("what evaluation does not allow says why", "[engine]") {
  const SmallConfig config{.stage = GENERATE(0, 1, 2, 3)};
  const Residency residency = GENERATE(Residency::kStreamed, Residency::kWhole);
  auto contexts = quiet_contexts(1);
  SmallModel model;
  auto engine = Engine::initialize(model, make_config(config), {.context = &contexts.front()});
  static_cast<void>(engine.weights(model.unit("b")));
  CHECK(error_of([&] { static_cast<void>(engine.evaluate(residency)); }) ==
        "UsageError: evaluate(): a micro-batch has begun: call step() first");
  model.run(engine, 1);
  engine.step();
  std::optional<Weights> open;
  {
    const Evaluation evaluation = engine.evaluate(residency);
    open.emplace(engine.weights(model.unit("b")));
    CHECK(error_of([&] { static_cast<void>(engine.gradients(model.unit("b"))); }) ==
          "UsageError: gradients('b'): there are none in an evaluation");
    const std::string rest = "(): an evaluation is under way: end its scope first";
    CHECK(error_of([&] { engine.step(); }) == "UsageError: step" + rest);
    CHECK(error_of([&] { static_cast<void>(engine.evaluate()); }) == "UsageError: evaluate" + rest);
    CHECK(error_of([&] { static_cast<void>(engine.weights_hash()); }) ==
          "UsageError: weights_hash" + rest);
    CHECK(error_of([&] { engine.drop_gradients(); }) == "UsageError: drop_gradients" + rest);
  }
  CHECK_FALSE(engine.is_evaluating());
  CHECK_THAT(error_of([&] { engine.step(); }),
             StartsWith("UsageError: an evaluation has ended while a weights lease"));
  open.reset();
  model.run(engine, 1);
  CHECK(engine.step().updates == 2);
}

TEST_CASE("an evaluation moves with its object", "[engine]") {
  auto contexts = quiet_contexts(1);
  SmallModel model;
  auto engine = Engine::initialize(model, make_config({}), {.context = &contexts.front()});
  {
    std::optional<Evaluation> first = engine.evaluate();
    const Evaluation second = std::move(*first);
    first.reset();
    CHECK(engine.is_evaluating());
  }
  CHECK_FALSE(engine.is_evaluating());
}

}  // namespace
}  // namespace sifr::test
