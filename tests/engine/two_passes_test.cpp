// Two passes through the units in one micro-batch, at every stage: forward twice, and both ways
// back or one.
#include "tests/engine/small_engine.hpp"

#include <catch2/catch.hpp>

namespace sifr::test {
namespace {

SmallConfig any_config() {
  const int stage = GENERATE(0, 1, 2, 3);
  const std::string zero = GENERATE("", R"("stage3_prefetch_bucket_size": 0,
    "stage3_max_live_parameters": 0, "stage3_param_persistence_threshold": 0,)");
  return {.stage = stage, .overlap = GENERATE(false, true), .zero = zero};
}

std::string hash_after(int steps,
                       const SmallConfig& config,
                       int gradient_leases,
                       const RankBody& micro_batch) {
  const auto body = [&](Engine& engine, SmallModel& model) {
    const std::int64_t held = engine.memory().total(Tier::kDevice).peak;
    for (int step = 0; step < steps; ++step) {
      micro_batch(engine, model);
      engine.step();
    }
    SIFR_CHECK_RANK(engine.memory().total(Tier::kDevice).peak == held);
    return engine.weights_hash();
  };
  const SmallModel model({{"a", 300, gradient_leases}, {"b", 300, gradient_leases}});
  return on_ranks(2, config, body, model);
}

TEST_CASE("two forwards and then both ways back give the sum of both", "[engine][ST304]") {
  const SmallConfig config = any_config();
  const auto in_turn = [](Engine& engine, SmallModel& model) {
    model.read(engine);
    model.read(engine);
    for (const float gradient : {2.0F, 3.0F}) {
      model.add(engine, "b", gradient);
      model.add(engine, "a", gradient);
    }
  };
  const auto at_once = [](Engine& engine, SmallModel& model) { model.run(engine, 5); };
  CHECK(hash_after(3, config, 2, in_turn) == hash_after(3, config, 1, at_once));
}

TEST_CASE("a second forward without gradients costs no memory and changes no bit",
          "[engine][ST303]") {
  const SmallConfig config = any_config();
  const auto once = [](Engine& engine, SmallModel& model) { model.run(engine, 0.5F); };
  const auto twice = [](Engine& engine, SmallModel& model) {
    model.read(engine);
    model.run(engine, 0.5F);
  };
  CHECK(hash_after(20, config, 1, twice) == hash_after(20, config, 1, once));
}

}  // namespace
}  // namespace sifr::test
