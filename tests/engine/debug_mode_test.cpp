// "sifr": {"debug": true}: memory that nobody may read holds NaNs, at every stage.
#include "tests/engine/odd_model.hpp"
#include "tests/engine/small_engine.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>

namespace sifr::test {
namespace {

SmallConfig any_config() {
  const int stage = GENERATE(0, 1, 2, 3);
  const bool overlap = GENERATE(false, true);
  return {.stage = stage, .overlap = overlap, .sifr = R"("debug": true,)"};
}

// A pointer that outlived its lease. What it points to stays the engine's memory.
float stale(const float* pointer, std::int64_t index) {
  return static_cast<const volatile float*>(pointer)[index];
}

template <class T>
concept Readable = requires(T lease) {
  std::forward<T>(lease).template data<float>(0);
};
static_assert(Readable<const Weights&> && Readable<Gradients&>);
static_assert(!Readable<Weights> && !Readable<Gradients>, "its pointer would outlive the lease");

TEST_CASE("in debug mode a fill that depends on its calls is told", "[engine][debug]") {
  auto contexts = quiet_contexts(1);
  float state = 0;
  const auto declare = [&](Units& units) {
    const auto fill = [&](std::int64_t, std::span<float> values) {
      for (float& value : values)
        value = ++state;
    };
    units.add("a", {{.name = "a.weight", .shape = {3}, .fill = fill}});
  };
  const auto start = [&] {
    static_cast<void>(
        Engine::initialize(declare, make_config(any_config()), {.context = &contexts.front()}));
  };
  CHECK_THAT(error_of(start), Catch::Contains("fill of 'a.weight' gives other values"));
}

const float* kept_pointer(Engine& engine, SmallModel& model) {
  const Weights lease = engine.weights(model.unit("a"));
  return lease.data<float>(0);
}

TEST_CASE("a pointer from an ended weights lease reads NaN", "[engine]") {
  const auto body = [](Engine& engine, SmallModel& model) {
    for (int step = 0; step < 3; ++step) {
      const float* const a = kept_pointer(engine, model);
      SIFR_CHECK_RANK(std::isnan(stale(a, 299)));
      const Weights b = engine.weights(model.unit("b"));
      for (const std::int64_t index : {0, 150, 299})
        SIFR_CHECK_RANK(std::isnan(stale(a, index)));
      SIFR_CHECK_RANK(std::isfinite(b.data<float>(0)[299]));
      const Weights again = engine.weights(model.unit("a"));
      SIFR_CHECK_RANK(std::isfinite(again.data<float>(0)[299]));
      if (step > 0) continue;
      const Weights c = engine.weights(model.unit("c"));
      SIFR_CHECK_RANK(std::isfinite(b.data<float>(0)[0]));
    }
  };
  for (const std::string& error : errors_of_ranks(2, any_config(), body))
    CHECK(error == "");
}

TEST_CASE("in debug mode a gradient that is not finite points at kept pointers", "[engine]") {
  auto contexts = quiet_contexts(1);
  SmallModel model;
  auto engine =
      Engine::initialize(model, make_config(any_config()), {.context = &contexts.front()});
  const float* const kept = kept_pointer(engine, model);
  model.add(engine, "b", stale(kept, 0));
  CHECK_THAT(error_of([&] { engine.step(); }), Catch::Contains("look for a pointer that is kept"));
}

TEST_CASE("in debug mode weights are those of the last update", "[engine]") {
  const auto body = [](Engine& engine, SmallModel& model) {
    for (int step = 0; step < 3; ++step) {
      model.run(engine, 1);
      engine.step();
      const float* stale_pointer = nullptr;
      {
        const Evaluation evaluation = engine.evaluate();
        const Weights a = engine.weights(model.unit("a"));
        stale_pointer = a.data<float>(0);
        const float moved = SmallModel::initial_value(0) - a.data<float>(0)[0];
        SIFR_CHECK_RANK(std::abs(moved - static_cast<float>(step + 1)) < 1e-3F);
      }
      engine.drop_gradients();
      SIFR_CHECK_RANK(std::isnan(stale(stale_pointer, 0)));
    }
  };
  for (const std::string& error : errors_of_ranks(2, any_config(), body))
    CHECK(error == "");
}

TEST_CASE("a pointer from a gradients lease reads NaN once the micro-batch has ended", "[engine]") {
  SmallConfig config = any_config();
  config.accumulation = 2;
  if (GENERATE(false, true)) config.zero = R"("reduce_bucket_size": 300,)";
  const auto body = [](Engine& engine, SmallModel& model) {
    for (int micro = 0; micro < 4; ++micro) {
      std::vector<float*> pointers;
      for (const char* unit : {"tied", "c", "b", "tied"}) {
        const Gradients gradients = engine.gradients(model.unit(unit));
        float* const data = gradients.data<float>(0);
        if (gradients.is_first()) SIFR_CHECK_RANK(data[0] == 0 && data[299] == 0);
        data[299] += 1;
        pointers.push_back(data);
      }
      engine.step();
      for (const float* pointer : pointers)
        SIFR_CHECK_RANK(std::isnan(stale(pointer, 0)) && std::isnan(stale(pointer, 299)));
    }
  };
  const SmallModel model({{"tied", 300, 2}, {"b"}, {"c"}});
  for (const std::string& error : errors_of_ranks(2, config, body, model))
    CHECK(error == "");
}

std::string hash_of_odd_model(int ranks, const SmallConfig& config) {
  auto contexts = quiet_contexts(ranks);
  std::string hash;
  run_ranks(contexts, [&](Context& context) {
    OddModel model;
    auto engine = Engine::initialize(model, make_config(config), {.context = &context});
    for (std::int64_t step = 0; step < 3; ++step) {
      for (std::int64_t micro = 0; micro < config.accumulation; ++micro) {
        model.run(engine, {context.rank(), step, micro});
        engine.step();
      }
    }
    const std::string own = engine.weights_hash();
    if (context.rank() == 0) hash = own;
  });
  return hash;
}

TEST_CASE("debug mode changes no bit", "[engine]") {
  const int ranks = GENERATE(1, 3);
  SmallConfig config = any_config();
  config.is_bf16 = GENERATE(false, true);
  config.accumulation = 2;
  const std::string debug = hash_of_odd_model(ranks, config);
  config.sifr = "";
  CHECK(debug == hash_of_odd_model(ranks, config));
}

}  // namespace
}  // namespace sifr::test
