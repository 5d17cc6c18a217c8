// A trainer whose backward has threads of its own.
#include "tests/engine/small_engine.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <thread>
#include <vector>

namespace sifr::test {
namespace {

constexpr int kThreads = 4;
constexpr int kSteps = 50;

// Adds `gradient` to a quarter of the unit, some time later.
void add_quarter(const Gradients& gradients, int quarter, std::int64_t count, float gradient) {
  std::this_thread::sleep_for(std::chrono::microseconds(quarter * 137 % 400));
  for (std::int64_t i = count * quarter / kThreads; i < count * (quarter + 1) / kThreads; ++i)
    gradients.data<float>(0)[i] += gradient;
}

void add_by_threads(Engine& engine,
                    const SmallModel& model,
                    const SmallUnit& unit,
                    float gradient) {
  const Weights weights = engine.weights(model.unit(unit.name));
  const Gradients gradients = engine.gradients(model.unit(unit.name));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] { add_quarter(gradients, t, unit.count, gradient); });
  for (std::thread& thread : threads)
    thread.join();
}

TEST_CASE("several threads may fill what one lease holds, in a bucket with other units",
          "[engine][COM03]") {
  const std::vector<SmallUnit> units = {{"a"}, {"b"}, {"c"}};
  const SmallConfig config = {.stage = GENERATE(1, 2, 3), .overlap = true};
  const auto trained = [&](bool by_threads) {
    const auto body = [&](Engine& engine, SmallModel& model) {
      for (int step = 0; step < kSteps; ++step) {
        const float gradient = 0.25F * static_cast<float>(engine.rank() + 1 + step % 3);
        for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
          if (by_threads) {
            add_by_threads(engine, model, *unit, gradient);
          } else {
            model.add(engine, unit->name, gradient);
          }
        }
        engine.step();
      }
      return engine.weights_hash();
    };
    return on_ranks(2, config, body, SmallModel(units));
  };
  CHECK(trained(true) == trained(false));
}

}  // namespace
}  // namespace sifr::test
