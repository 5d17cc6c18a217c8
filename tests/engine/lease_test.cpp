// Each rule of leases and each misuse, on one rank, at every stage: the rules know no stage.
#include "tests/engine/small_engine.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <limits>
#include <optional>

using Catch::Contains;
using Catch::StartsWith;

namespace sifr::test {
namespace {

struct Small {
  explicit Small(const SmallConfig& config = {.stage = 0},
                 std::vector<SmallUnit> units = {{"a"}, {"b"}, {"c"}})
      : contexts(quiet_contexts(1)),
        model(std::move(units)),
        engine(Engine::initialize(model, make_config(config), {.context = &contexts.front()})) {}
  std::vector<Context> contexts;
  SmallModel model;
  Engine engine;
};

int any_stage() {
  return GENERATE(0, 1, 2, 3);
}

// What an engine holds that has made one ordinary step.
std::string hash_after_a_step(int stage) {
  Small small({.stage = stage});
  small.model.run(small.engine, 0.5F);
  small.engine.step();
  return small.engine.weights_hash();
}

TEST_CASE("weights leases nest, repeat, overlap and move freely", "[engine]") {
  const int stage = any_stage();
  Small small({.stage = stage});
  {
    const Weights outer = small.engine.weights(small.model.unit("a"));
    std::optional<Weights> b = small.engine.weights(small.model.unit("b"));
    {
      const Weights inner = small.engine.weights(small.model.unit("a"));
      CHECK(inner.data<float>(0) == outer.data<float>(0));
    }
    Weights moved = std::move(*b);
    b.reset();
    const Weights c = small.engine.weights(small.model.unit("c"));
    for (const Weights* lease : {&outer, static_cast<const Weights*>(&moved), &c}) {
      CHECK(lease->data<float>(0)[299] == SmallModel::initial_value(299));
      CHECK(reinterpret_cast<std::uintptr_t>(lease->data<float>(0)) % 512 == 0);
    }
  }
  small.model.run(small.engine, 0.5F);
  small.engine.step();
  CHECK(small.engine.weights_hash() == hash_after_a_step(stage));
}

TEST_CASE("a lease that was moved from is a UsageError", "[engine]") {
  Small small({.stage = any_stage()});
  Weights first = small.engine.weights(small.model.unit("a"));
  const Weights second = std::move(first);
  CHECK(error_of(
            [&] { static_cast<void>(first.data<float>(0)); }) ==  // NOLINT(bugprone-use-after-move)
        "UsageError: a lease was used after it had been moved from");
}

TEST_CASE("no call that ends or leaves the micro-batch may find a lease open", "[engine]") {
  const int stage = any_stage();
  Small small({.stage = stage});
  {
    const bool is_gradient = GENERATE(false, true);
    std::optional<Weights> weights;
    std::optional<Gradients> gradients;
    if (is_gradient) {
      gradients.emplace(small.engine.gradients(small.model.unit("b")));
    } else {
      weights.emplace(small.engine.weights(small.model.unit("b")));
    }
    const std::string rest = "(): a lease on unit 'b' is open: end its scope first";
    CHECK(error_of([&] { small.engine.step(); }) == "UsageError: step" + rest);
    CHECK(error_of([&] { small.engine.drop_gradients(); }) == "UsageError: drop_gradients" + rest);
    CHECK(error_of([&] { static_cast<void>(small.engine.evaluate()); }) ==
          "UsageError: evaluate" + rest);
    CHECK(error_of([&] { small.engine.export_weights([](const WeightPiece&) {}); }) ==
          "UsageError: export_weights" + rest);
    CHECK(error_of([&] { static_cast<void>(small.engine.weights_hash()); }) ==
          "UsageError: weights_hash" + rest);
  }
  small.engine.drop_gradients();
  small.model.run(small.engine, 0.5F);
  small.engine.step();
  CHECK(small.engine.weights_hash() == hash_after_a_step(stage));
}

TEST_CASE("one gradients lease more than declared names the unit and both numbers", "[engine]") {
  const int declared = GENERATE(1, 2);
  Small small({.stage = any_stage()}, {{"a"}, {"b", 300, declared}});
  for (int step = 0; step < 2; ++step) {
    for (int lease = 0; lease < declared; ++lease)
      small.model.add(small.engine, "b", 1);
    CHECK_THAT(error_of([&] { static_cast<void>(small.engine.gradients(small.model.unit("b"))); }),
               StartsWith("UsageError: gradients('b'): this is lease number " +
                          std::to_string(declared + 1)) &&
                   Contains("the unit declares " + std::to_string(declared)) &&
                   Contains("raise gradient_leases") && Contains("without a step()"));
    CHECK(small.engine.step().outcome == Outcome::kUpdated);
  }
}

TEST_CASE("fewer gradients leases than declared close at the end of the micro-batch", "[engine]") {
  Small small({.stage = any_stage()}, {{"a"}, {"b", 300, 3}});
  small.model.add(small.engine, "b", 1);
  small.model.add(small.engine, "a", 2);
  small.model.add(small.engine, "b", 2);
  small.engine.step();
  CHECK(masters(small.engine, "b.weight")[7] == Approx(SmallModel::initial_value(7) - 3));
  CHECK(masters(small.engine, "a.weight")[7] == Approx(SmallModel::initial_value(7) - 2));
}

TEST_CASE("the gradients of a step are applied in that step alone", "[engine][GRD10]") {
  Small small({.stage = any_stage(), .accumulation = 2}, {{"a"}, {"b"}});
  small.model.add(small.engine, "a", 1);  // before b, against the order of declaration
  small.model.add(small.engine, "b", 1);
  small.engine.step();
  small.model.add(small.engine, "a", 1);
  small.engine.step();
  const std::vector<float> after_one = masters(small.engine, "b.weight");
  for (int micro = 0; micro < 4; ++micro) {
    small.model.add(small.engine, "a", 1);
    small.engine.step();
  }
  CHECK(masters(small.engine, "b.weight") == after_one);
}

TEST_CASE("the first gradients lease finds zeros and later ones the sum so far", "[engine]") {
  Small small({.stage = any_stage()}, {{"a"}, {"b", 300, 2}});
  for (int step = 0; step < 3; ++step) {
    for (int lease = 0; lease < 2; ++lease) {
      const Gradients gradients = small.engine.gradients(small.model.unit("b"));
      CHECK(gradients.is_first() == (lease == 0));
      CHECK(gradients.data<float>(0)[299] == static_cast<float>(lease) * 5);
      CHECK(reinterpret_cast<std::uintptr_t>(gradients.data<float>(0)) % 512 == 0);
      gradients.data<float>(0)[299] += 5;
    }
    small.engine.step();
  }
}

TEST_CASE("asking for another dtype or parameter names what there is", "[engine][API01]") {
  Small small({.stage = any_stage(), .is_bf16 = true}, {{"a"}, {"ice", 300, 1, false}});
  {
    const Weights weights = small.engine.weights(small.model.unit("a"));
    const Gradients gradients = small.engine.gradients(small.model.unit("a"));
    CHECK(error_of([&] { static_cast<void>(weights.data<float>(0)); }) ==
          "UsageError: the weights of 'a.weight' are bf16, and were asked for as fp32: ask for "
          "data<sifr::bfloat16>, or leave bf16.enabled out of the file");
    CHECK(error_of([&] { static_cast<void>(gradients.data<float>(0)); }) ==
          "UsageError: the gradient of 'a.weight' is bf16, and was asked for as fp32: ask for "
          "data<sifr::bfloat16>, or leave bf16.enabled out of the file");
    for (const int parameter : {-1, 1}) {
      CHECK(error_of([&] { static_cast<void>(weights.raw(parameter)); }) ==
            "UsageError: unit 'a' has 1 parameters, and number " + std::to_string(parameter) +
                " was asked for");
    }
    const Gradients frozen = small.engine.gradients(small.model.unit("ice"));
    CHECK_FALSE(frozen.has(0));
    CHECK(error_of([&] { static_cast<void>(frozen.raw(0)); }) ==
          "UsageError: 'ice.weight' is frozen and has no gradient: ask has() first");
  }
  CHECK(small.engine.step().outcome == Outcome::kUpdated);
}

TEST_CASE("a unit of an engine that has ended is refused by a later one", "[engine]") {
  Unit stale;
  {
    const Small small({.stage = any_stage()}, {{"a"}, {"old"}});
    stale = small.model.unit("old");
  }
  Small small({.stage = any_stage()}, {{"a"}, {"b"}});
  CHECK_THAT(error_of([&] { static_cast<void>(small.engine.weights(stale)); }),
             StartsWith("UsageError: weights(): unit 'old' was declared for another engine"));
}

TEST_CASE("a unit of another engine, or of none, is refused", "[engine]") {
  Small small({.stage = any_stage()});
  Small other({}, {{"other"}});
  const Unit foreign = other.model.unit("other");
  const std::string text =
      "(): unit 'other' was declared for another engine than this one, whose first unit is 'a'. "
      "Give each engine a model of its own: a second Engine::initialize declares a model's units "
      "anew";
  CHECK(error_of([&] { static_cast<void>(small.engine.weights(foreign)); }) ==
        "UsageError: weights" + text);
  CHECK(error_of([&] { static_cast<void>(small.engine.gradients(foreign)); }) ==
        "UsageError: gradients" + text);
  CHECK(error_of([&] { static_cast<void>(small.engine.weights(Unit())); }) ==
        "UsageError: weights(): the unit was not made by Units::add");
}

TEST_CASE("weights and learning rates that are no numbers are refused", "[engine]") {
  const int stage = any_stage();
  Small small({.stage = stage});
  small.model.run(small.engine, 0.5F);
  CHECK(error_of([&] { small.engine.step({.weight = -1}); }) ==
        "UsageError: step(): weight is -1, and must be 0 or more");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THAT(error_of([&] { small.engine.step({.weight = nan}); }), Contains("weight is nan"));
  for (const double lr : {nan, -1.0, 1e39})
    CHECK_THAT(error_of([&] { small.engine.step({.lr = lr}); }), Contains("step(): lr is "));
  CHECK(small.engine.step().outcome == Outcome::kUpdated);
  CHECK(small.engine.weights_hash() == hash_after_a_step(stage));
}

TEST_CASE("a step without weight drops its gradients and says so", "[engine][GRD16]") {
  const int stage = any_stage();
  Small small({.stage = stage});
  const std::string before = small.engine.weights_hash();
  small.model.run(small.engine, 3);
  const double weight = GENERATE(0.0, 1e-320);  // or too little to divide by
  CHECK_THAT(
      error_of([&] { small.engine.step({.weight = weight}); }),
      StartsWith("UsageError: step(): the weights of all ranks and micro-batches of this step "
                 "add up to "));
  CHECK(small.engine.weights_hash() == before);
  for (int step = 0; step < 3; ++step) {
    small.model.run(small.engine, 0.5F);
    CHECK(small.engine.step().step == step + 1);
  }
  Small clean({.stage = stage});
  for (int step = 0; step < 3; ++step) {
    clean.model.run(clean.engine, 0.5F);
    clean.engine.step();
  }
  CHECK(small.engine.weights_hash() == clean.engine.weights_hash());
}

TEST_CASE("dropped gradients leave no trace", "[engine]") {
  const int stage = any_stage();
  Small small({.stage = stage, .overlap = GENERATE(false, true), .accumulation = 2});
  Small clean({.stage = stage, .accumulation = 2});
  for (int step = 0; step < 3; ++step) {
    small.model.run(small.engine, 7);
    small.engine.step();
    small.model.add(small.engine, "b", 9);  // in the middle of a micro-batch
    small.engine.drop_gradients();
    for (int micro = 0; micro < 2; ++micro) {
      small.model.run(small.engine, 0.5F);
      const StepReport report = small.engine.step();
      CHECK(report.step == step + micro);
      clean.model.run(clean.engine, 0.5F);
      CHECK(clean.engine.step().gradient_norm == report.gradient_norm);
    }
  }
  CHECK(small.engine.weights_hash() == clean.engine.weights_hash());
}

TEST_CASE("calls that a model or a micro-batch does not allow say why", "[engine]") {
  Small frozen({.stage = any_stage()}, {{"ice", 300, 1, false}});
  CHECK(error_of([&] { frozen.engine.step(); }) ==
        "UsageError: step(): the model has no trainable parameter");
  CHECK_THAT(error_of([&] { frozen.engine.forward(3); }), Contains("override it"));
  CHECK_THAT(error_of([&] { frozen.engine.backward(); }), Contains("override it"));
  CHECK_THAT(error_of([] { static_cast<void>(Batch(3).as<float>()); }),
             Contains("the batch is of type int, and was asked for as float"));
}

TEST_CASE("a unit that no rank uses in a step is told once, by name", "[engine][PAR11]") {
  std::vector<std::string> warnings;
  const auto log = [&](Level level, std::string_view text) {
    if (level == Level::kWarning) warnings.emplace_back(text);
  };
  auto contexts = Context::threads(1, {.log = log});
  SmallModel model;
  auto engine = Engine::initialize(
      model, make_config({.stage = any_stage()}), {.context = &contexts.front()});
  warnings.clear();
  for (int step = 0; step < 3; ++step) {
    model.add(engine, "a", 1);
    model.add(engine, "c", 1);
    CHECK(engine.step().outcome == Outcome::kUpdated);
  }
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings.front(), Contains("unit 'b' in step 1"));
  CHECK(masters(engine, "b.weight")[3] == SmallModel::initial_value(3));
}

TEST_CASE("each unit with fewer gradients leases than declared is told of", "[engine]") {
  std::vector<std::string> warnings;
  const auto log = [&](Level level, std::string_view text) {
    if (level == Level::kWarning) warnings.emplace_back(text);
  };
  auto contexts = Context::threads(1, {.log = log});
  SmallModel model({{"tied", 300, 2}, {"twin", 300, 2}});
  auto engine = Engine::initialize(
      model, make_config({.stage = any_stage()}), {.context = &contexts.front()});
  warnings.clear();
  for (int step = 0; step < 3; ++step) {
    model.add(engine, "tied", 1);
    model.add(engine, "twin", 1);
    engine.step();
  }
  REQUIRE(warnings.size() == 2);
  CHECK_THAT(warnings[0] + warnings[1], Contains("'tied' declares") && Contains("'twin' declares"));
}

TEST_CASE("a unit with fewer gradients leases than declared is told once, by name", "[engine]") {
  std::vector<std::string> warnings;
  const auto log = [&](Level level, std::string_view text) {
    if (level == Level::kWarning) warnings.emplace_back(text);
  };
  auto contexts = Context::threads(1, {.log = log});
  SmallModel model({{"tied", 300, 2}, {"b"}});
  auto engine = Engine::initialize(
      model, make_config({.stage = any_stage()}), {.context = &contexts.front()});
  warnings.clear();
  for (int step = 0; step < 3; ++step) {
    if (step == 0) model.add(engine, "tied", 1);  // then one of the two is forgotten
    model.add(engine, "b", 1);
    model.add(engine, "tied", 1);
    engine.step();
  }
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings.front(),
             Contains("'tied' declares 2 gradients leases, and fewer were taken in step 2"));
}

}  // namespace
}  // namespace sifr::test
