// From the third step on the engine's calls allocate nothing, in any thread.
#include "tests/engine/odd_model.hpp"
#include "tests/engine/small_engine.hpp"
#include "tests/support/count_allocations.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <iostream>
#include <thread>

namespace sifr::test {
namespace {

// Ranks wait for each other between steps without a call that could allocate.
class Gate {
 public:
  explicit Gate(int ranks) : ranks_(ranks) {}
  void pass() {
    const int round = arrived_.fetch_add(1) / ranks_;
    while (arrived_.load() < (round + 1) * ranks_)
      std::this_thread::yield();
  }

 private:
  int ranks_;
  std::atomic<int> arrived_ = 0;
};

struct Case {
  SmallConfig config;
  int ranks = 2;
  bool evaluates = false;
  bool allocates = false;  // deliberately, in the last step
};

Allocations made_from_third_step(const Case& c) {
  auto contexts = quiet_contexts(c.ranks);
  Gate gate(c.ranks);
  Allocations before;
  Allocations after;
  run_ranks(contexts, [&](Context& context) {
    OddModel model;
    auto engine = Engine::initialize(model, make_config(c.config), {.context = &context});
    void* volatile deliberate = nullptr;
    for (std::int64_t step = 0; step < 6; ++step) {
      gate.pass();
      if (step == 2 && context.rank() == 0) before = allocations_so_far();
      gate.pass();
      for (std::int64_t micro = 0; micro < c.config.accumulation; ++micro) {
        model.run(engine, {context.rank(), step, micro});
        engine.step();
      }
      if (c.evaluates) {
        const Evaluation evaluation = engine.evaluate();
        for (int u = 0; u < 7; ++u)
          static_cast<void>(engine.weights(model.unit(u)));
      }
      if (c.allocates && step == 5 && context.rank() == 1) deliberate = ::operator new(8);
    }
    gate.pass();
    if (context.rank() == 0) after = allocations_so_far();
    gate.pass();
    ::operator delete(deliberate);
  });
  return after - before;
}

bool is_skipped() {
  if (!can_count_allocations()) std::cout << "[skipped] a sanitizer brings its own allocator\n";
  return !can_count_allocations();
}

TEST_CASE("from the third step on the engine's calls allocate nothing", "[engine]") {
  if (is_skipped()) return;
  const int stage = GENERATE(0, 1, 2, 3);
  const bool overlap = GENERATE(false, true);
  const bool is_bf16 = GENERATE(false, true);
  const std::string zero =
      GENERATE("", R"("reduce_bucket_size": 300, "stage3_prefetch_bucket_size": 1500,
    "stage3_max_live_parameters": 6000, "stage3_param_persistence_threshold": 300,)");
  const SmallConfig config{.stage = stage,
                           .overlap = overlap,
                           .is_bf16 = is_bf16,
                           .accumulation = 2,
                           .clip = 0.3,
                           .zero = zero};
  const bool evaluates = GENERATE(false, true);
  CHECK(made_from_third_step({.config = config, .evaluates = evaluates}) == Allocations{});
}

TEST_CASE("reducing at the boundary and debug mode allocate nothing either", "[engine]") {
  if (is_skipped()) return;
  const std::string sifr = GENERATE(R"("reduce_at": "boundary",)", R"("debug": true,)");
  const SmallConfig config{
      .stage = GENERATE(0, 1), .overlap = GENERATE(false, true), .accumulation = 2, .sifr = sifr};
  CHECK(made_from_third_step({.config = config}) == Allocations{});
}

TEST_CASE("a progress line allocates nothing either", "[engine]") {
  if (is_skipped()) return;
  const SmallConfig config{.top = R"("steps_per_print": 1,)"};
  CHECK(made_from_third_step({.config = config}) == Allocations{});
}

TEST_CASE("one deliberate allocation is seen", "[engine]") {
  if (is_skipped()) return;
  const SmallConfig config{.stage = GENERATE(0, 3)};
  CHECK(made_from_third_step({.config = config, .allocates = true}).memory == 1);
}

}  // namespace
}  // namespace sifr::test
