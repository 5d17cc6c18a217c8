// How engines start: what keeps one from it, and what does not.
#include "tests/engine/small_engine.hpp"

#include <catch2/catch.hpp>

#include <stdexcept>

namespace sifr::test {
namespace {

constexpr const char* kOptimizer = R"("optimizer": {"type": "AdamW"})";

Config config_with(const std::string& keys) {
  return parse_config("{" + keys + "}", "start.json");
}

void declare_one(Units& units) {
  units.add("one", {{.name = "one.weight", .shape = {4}}});
}

TEST_CASE("an engine with its own context tells why it cannot start", "[engine]") {
  const std::string micro = R"("train_micro_batch_size_per_gpu": 1, )";
  const auto start = [](const Engine::Declare& declare, const Config& config) {
    const Engine engine = Engine::initialize(declare, config);
  };
  CHECK_THROWS_AS(start(declare_one, config_with(kOptimizer)), ConfigError);
  CHECK_THROWS_AS(start(declare_one, config_with(micro + R"("steps_per_print": 1)")), ConfigError);
  const auto twice = [](Units& units) {
    declare_one(units);
    declare_one(units);
  };
  CHECK_THROWS_AS(start(twice, config_with(micro + kOptimizer)), UsageError);
  const auto too_large = [](Units& units) {
    units.add("large", {{.name = "large.weight", .shape = {std::int64_t{1} << 40}}});
  };
  CHECK_THROWS_AS(start(too_large, config_with(micro + kOptimizer)), OutOfMemory);
  const auto throws = [](Units&) { throw std::runtime_error("no model today"); };
  CHECK_THROWS_WITH(start(throws, config_with(micro + kOptimizer)), "no model today");
  CHECK_THROWS_AS(static_cast<void>(Engine::initialize(declare_one, "no such file.json")),
                  ConfigError);
}

TEST_CASE("a unit without parameters is leased like any other, and does nothing", "[engine]") {
  const Config config = make_config({.stage = GENERATE(0, 1, 2, 3)});
  auto contexts = quiet_contexts(2);
  run_ranks(contexts, [&](Context& context) {
    Unit full;
    Unit none;
    const Engine::Declare declare = [&](Units& units) {
      full = units.add("full", {{.name = "full.weight", .shape = {300}}});
      none = units.add("none", {});
    };
    auto engine = Engine::initialize(declare, config, {.context = &context});
    for (std::int64_t step = 1; step <= 2; ++step) {
      {
        const Weights weights = engine.weights(none);
        const Gradients gradients = engine.gradients(none);
        const std::string error = error_of([&] { static_cast<void>(gradients.has(0)); });
        SIFR_CHECK_RANK(error ==
                        "UsageError: unit 'none' has 0 parameters, and number 0 was asked for");
      }
      static_cast<void>(engine.gradients(full));
      SIFR_CHECK_RANK(engine.step().updates == step);
    }
  });
}

}  // namespace
}  // namespace sifr::test
