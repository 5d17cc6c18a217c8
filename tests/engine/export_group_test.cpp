// Exports of a group: a rank that stays out, a sink that takes its time.
#include "tests/engine/small_engine.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <thread>

namespace sifr::test {
namespace {

TEST_CASE("an export on one rank alone ends in time and names the rank that is missing",
          "[engine][API02][CKP15]") {
  const Config config = make_config({.stage = 3});
  auto contexts = quiet_contexts(2);
  std::atomic<bool> is_done = false;
  run_ranks(contexts, [&](Context& context) {
    SmallModel model;
    auto engine = Engine::initialize(model, config, {.context = &context});
    context.barrier();  // the start may take longer
    context.communicator().set_timeout(std::chrono::seconds(1));
    while (context.rank() == 1 && !is_done)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (context.rank() == 1) return;
    const std::string error = error_of([&] { static_cast<void>(masters(engine, "a.weight")); });
    is_done = true;
    SIFR_CHECK_RANK(error.starts_with("CommTimeout: ") && error.find("rank 1") != error.npos);
  });
}

TEST_CASE("a sink may take longer than the timeout, as long as each piece does not",
          "[engine][CKP31]") {
  const Config config = make_config({.stage = 3});
  auto contexts = quiet_contexts(2);
  run_ranks(contexts, [&](Context& context) {
    SmallModel model;  // of six pieces
    auto engine = Engine::initialize(model, config, {.context = &context});
    context.barrier();
    context.communicator().set_timeout(std::chrono::seconds(3));
    engine.export_weights(
        [](const WeightPiece&) { std::this_thread::sleep_for(std::chrono::milliseconds(550)); });
    context.communicator().set_timeout(std::chrono::minutes(1));
    model.run(engine, 1);
    SIFR_CHECK_RANK(engine.step().outcome == Outcome::kUpdated);
  });
}

}  // namespace
}  // namespace sifr::test
