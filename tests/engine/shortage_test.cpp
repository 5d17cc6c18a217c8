// Memory that is missing while the engine runs: told at once, by name, and to every rank.
#include "tests/engine/small_engine.hpp"

#include <catch2/catch.hpp>

#include <optional>

namespace sifr::test {
namespace {

void check_error(const std::string& error, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    SIFR_CHECK_RANK(error.find(part) != std::string::npos);
}

TEST_CASE("memory that a call needs for itself is there on every rank, or refused on all",
          "[engine][MEM09]") {
  auto contexts = quiet_contexts(2, {.device = 1 << 20});
  const bool exports = GENERATE(false, true);
  run_ranks(contexts, [&](Context& context) {
    SmallModel model({{"a", 20'000}});
    auto engine = Engine::initialize(model, make_config({.stage = 3}), {.context = &context});
    const auto call = [&] {
      if (exports) {
        engine.export_weights([](const WeightPiece&) {});
      } else {
        const Evaluation evaluation = engine.evaluate(Residency::kWhole);
        model.read(engine);
      }
    };
    const std::int64_t free = (1 << 20) - engine.memory().total(Tier::kDevice).now;
    std::optional<Charge> own = engine.charge(context.rank() == 1 ? free - 1000 : 0);
    const std::string error = error_of(call);
    own.reset();
    SIFR_CHECK_RANK(error.starts_with("OutOfMemory: "));
    const bool is_told = error.find("rank 1 has no room") != std::string::npos;
    SIFR_CHECK_RANK(is_told == (context.rank() != 1));
    call();
    model.run(engine, 1);
    SIFR_CHECK_RANK(engine.step().outcome == Outcome::kUpdated);
  });
}

TEST_CASE("an export makes do with little memory, in smaller pieces", "[engine][MEM09]") {
  auto contexts = quiet_contexts(2, {.device = 1 << 20});
  run_ranks(contexts, [&](Context& context) {
    SmallModel model({{"a", 20'000}});
    auto engine = Engine::initialize(model, make_config({.stage = 3}), {.context = &context});
    const std::int64_t free = (1 << 20) - engine.memory().total(Tier::kDevice).now;
    const Charge own = engine.charge(context.rank() == 1 ? free - 5000 : 0);
    std::vector<float> values;
    engine.export_weights([&](const WeightPiece& piece) {
      SIFR_CHECK_RANK(piece.first == static_cast<std::int64_t>(values.size()));
      const auto* first = reinterpret_cast<const float*>(piece.values.data);
      values.insert(values.end(), first, first + piece.values.count);
    });
    SIFR_CHECK_RANK(values.size() == (context.rank() == 0 ? 20'000 : 0));
    for (std::size_t i = 0; i < values.size(); ++i)
      SIFR_CHECK_RANK(values[i] == SmallModel::initial_value(static_cast<std::int64_t>(i)));
  });
}

TEST_CASE("a lease for which one rank alone has no room ends the group at once", "[engine]") {
  const SmallConfig config{
      .stage = 3,
      .overlap = GENERATE(false, true),
      .zero =
          R"("stage3_max_live_parameters": 0, "stage3_param_persistence_threshold": 0, "stage3_prefetch_bucket_size": 0,)"};
  const auto body = [](Engine& engine, SmallModel& model) {
    std::vector<Weights> held;
    for (const char* unit : {"a", "b", "c"}) {
      Weights weights = engine.weights(model.unit(unit));
      if (engine.rank() == 1) held.push_back(std::move(weights));
    }
    const auto lease = [&] { static_cast<void>(engine.weights(model.unit("d"))); };
    if (engine.rank() == 0) return lease();
    check_error(error_of(lease), {"OutOfMemory: ", "no room for unit 'd'"});
    held.clear();
    const std::string again = error_of([&] { engine.drop_gradients(); });
    check_error(again, {"CommError: rank 1 failed: ", "no room for unit 'd'"});
  };
  const auto errors = errors_of_ranks(2, config, body, SmallModel({{"a"}, {"b"}, {"c"}, {"d"}}));
  CHECK_THAT(
      errors[0],
      Catch::StartsWith("CommError: rank 1 failed: ") && Catch::Contains("no room for unit 'd'"));
  CHECK(errors[1] == "");
}

// `fill` takes leases on units a to d until one is refused; training goes on after it.
void check_is_refused_and_goes_on(const SmallConfig& config, const RankBody& fill) {
  const auto body = [&](Engine& engine, SmallModel& model) {
    fill(engine, model);
    engine.drop_gradients();
    for (int step = 0; step < 2; ++step) {
      model.run(engine, 1);
      SIFR_CHECK_RANK(engine.step().outcome == Outcome::kUpdated);
    }
  };
  for (const std::string& error :
       errors_of_ranks(1, config, body, SmallModel({{"a"}, {"b"}, {"c"}, {"d"}})))
    CHECK(error == "");
}

TEST_CASE("open leases that fill the window are named at once", "[engine]") {
  SmallConfig config{.stage = 3, .overlap = GENERATE(false, true)};
  config.zero = R"("stage3_max_live_parameters": 0, "stage3_param_persistence_threshold": 0,)";
  check_is_refused_and_goes_on(config, [](Engine& engine, SmallModel& model) {
    const Weights a = engine.weights(model.unit("a"));
    const Weights b = engine.weights(model.unit("b"));
    const Weights c = engine.weights(model.unit("c"));
    check_error(error_of([&] { static_cast<void>(engine.weights(model.unit("d"))); }),
                {"OutOfMemory: the gather window of ",
                 "no room for unit 'd'",
                 "leases on 'a', 'b', 'c' are open"});
  });
}

TEST_CASE("open gradients that fill the ring are named at once", "[engine]") {
  const SmallConfig config{.stage = GENERATE(2, 3), .overlap = GENERATE(false, true)};
  check_is_refused_and_goes_on(config, [](Engine& engine, SmallModel& model) {
    const Gradients d = engine.gradients(model.unit("d"));
    const Gradients c = engine.gradients(model.unit("c"));
    check_error(error_of([&] { static_cast<void>(engine.gradients(model.unit("b"))); }),
                {"OutOfMemory: the gradient ring of ",
                 "no room for unit 'b'",
                 "gradients of 'd', 'c' are open"});
  });
}

TEST_CASE("gradients of two neighbours fit in every step, as they fit in the first", "[engine]") {
  const SmallConfig config{.stage = GENERATE(0, 1, 2, 3), .overlap = GENERATE(false, true)};
  const auto body = [](Engine& engine, SmallModel& model) {
    for (int step = 0; step < 4; ++step) {
      {
        std::optional<Gradients> b = engine.gradients(model.unit("b"));
        const Gradients c = engine.gradients(model.unit("c"));
        b.reset();
      }
      model.add(engine, "a", 1);
      SIFR_CHECK_RANK(engine.step().outcome == Outcome::kUpdated);
    }
  };
  for (const std::string& error :
       errors_of_ranks(1, config, body, SmallModel({{"a", 256}, {"b", 256}, {"c", 768}})))
    CHECK(error == "");
}

TEST_CASE("a unit that is left out needs no room beside open gradients", "[engine]") {
  const SmallConfig config{.stage = GENERATE(0, 1, 2, 3), .overlap = GENERATE(false, true)};
  const auto body = [](Engine& engine, SmallModel& model) {
    static_cast<void>(engine.weights(model.unit("c")));
    static_cast<void>(engine.gradients(model.unit("g")));
    static_cast<void>(engine.weights(model.unit("d")));
    SIFR_CHECK_RANK(engine.step().outcome == Outcome::kUpdated);
    for (int step = 0; step < 3; ++step) {
      {
        const Gradients d = engine.gradients(model.unit("d"));
        static_cast<void>(engine.weights(model.unit("d")));
      }
      SIFR_CHECK_RANK(engine.step().outcome == Outcome::kUpdated);
    }
  };
  const SmallModel model({{"a", 300},
                          {"b", 509},
                          {.name = "c", .count = 1021, .trainable = false},
                          {"d", 3001},
                          {"e", 251},
                          {"f", 3},
                          {"g", 766}});
  for (const std::string& error : errors_of_ranks(2, config, body, model))
    CHECK(error == "");
}

}  // namespace
}  // namespace sifr::test
