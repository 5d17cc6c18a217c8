#include "tests/engine/odd_plan.hpp"
#include "tests/engine/small_engine.hpp"
#include "tests/support/count_allocations.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <malloc.h>
#include <optional>
#include <string>
#include <thread>
#include <utility>

using Catch::Contains;

namespace sifr::test {
namespace {

void check_account(const SmallConfig& small, int ranks) {
  auto contexts = quiet_contexts(ranks);
  run_ranks(contexts, [&](Context& context) {
    OddModel model;
    const Config config = make_config(small);
    const MemoryPlan plan = plan_of_odd_model(config, context.size());
    auto engine = Engine::initialize(model, config, {.context = &context});
    check_account_is_plan(engine.memory(), plan);
    for (std::int64_t step = 0; step < 3; ++step) {
      model.run(engine, {context.rank(), step, 1});
      engine.step();
      check_account_is_plan(engine.memory(), plan);
    }
  });
}

TEST_CASE("the account equals the plan to the byte, before and after training",
          "[engine][MEM01][MEM03][MEM04]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const int ranks = GENERATE(1, 2, 3);
  const bool is_bf16 = GENERATE(false, true);
  const std::string zero = GENERATE("", R"("stage3_max_live_parameters": 1000,)");
  check_account({.stage = stage, .is_bf16 = is_bf16, .zero = zero}, ranks);
}

TEST_CASE("the account equals the plan in debug mode and with local accumulators", "[engine]") {
  const std::string sifr = GENERATE(R"("debug": true,)", R"("reduce_at": "boundary",)");
  check_account({.stage = GENERATE(0, 1), .sifr = sifr}, 2);
}

TEST_CASE("the trainer's own memory is in the account while it lives", "[engine]") {
  auto contexts = quiet_contexts(1);
  SmallModel model;
  auto engine = Engine::initialize(model, make_config({}), {.context = &contexts.front()});
  const std::int64_t before = engine.memory().total(Tier::kDevice).now;
  {
    const Buffer own = engine.allocate(1000);
    const Charge charge = engine.charge(500, Purpose::kStaging);
    CHECK(own.bytes() == 1000);
    CHECK(engine.memory().row(Tier::kDevice, Purpose::kActivation).now == 1000);
    CHECK(engine.memory().total(Tier::kDevice).now == before + 1500);
  }
  CHECK(engine.memory().total(Tier::kDevice).now == before);
  CHECK(engine.memory().total(Tier::kDevice).peak == before + 1500);
}

// What a rank is told that has room for `limit` bytes.
std::string told_at_start(const SmallConfig& config, int ranks, int units, std::int64_t limit) {
  auto contexts = quiet_contexts(ranks, {.device = limit});
  std::string text;
  run_ranks(contexts, [&](Context& context) {
    std::vector<SmallUnit> declared;
    for (int u = 0; u < units; ++u)
      declared.push_back({"unit" + std::to_string(u), 1'000'000});
    SmallModel model(declared);
    const std::string error = error_of([&] {
      static_cast<void>(Engine::initialize(model, make_config(config), {.context = &context}));
    });
    if (context.rank() == 0) text = error.substr(0, error.find('\n'));
  });
  return text;
}

TEST_CASE("a plan that does not fit names only what makes it smaller", "[engine][MEM09]") {
  constexpr std::int64_t kMiB = 1 << 20;
  const std::string empty_window = R"("stage3_max_live_parameters": 0,)";
  const SmallConfig least{.stage = 3, .zero = empty_window};
  const std::string on_one_rank = told_at_start(least, 1, 8, kMiB);
  CHECK_THAT(on_one_rank, Contains("are free: set zero_optimization.stage to 2 (down to "));
  CHECK_THAT(on_one_rank, !Contains("stage3_max_live_parameters"));
  CHECK_THAT(told_at_start({.stage = 2}, 1, 8, kMiB),
             Contains("are free: use more ranks, or raise the limit"));
  CHECK_THAT(told_at_start(least, 2, 8, kMiB), Contains("are free: use more ranks"));
  CHECK_THAT(told_at_start({.stage = 3}, 2, 8, kMiB),
             Contains("are free: lower zero_optimization.stage3_max_live_parameters (down to "));
  CHECK_THAT(told_at_start({}, 2, 1, 16 * kMiB),
             Contains("are free: set zero_optimization.stage to 1 (down to "));
  CHECK_THAT(told_at_start({.sifr = R"("debug": true,)"}, 2, 1, 26 * kMiB),
             Contains(R"(are free: leave out "sifr": {"debug": true} (down to )"));
  const std::string all = told_at_start({}, 2, 8, kMiB);
  CHECK_THAT(all,
             Contains("are free: set zero_optimization.stage to 3 and lower "
                      "stage3_max_live_parameters (down to ") &&
                 Contains(" in all), use more ranks, or raise the limit"));
}

TEST_CASE("a limit that the plan exceeds is an OutOfMemory at start, and costs nothing else",
          "[engine][MEM09]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const int ranks = GENERATE(1, 3);
  constexpr std::int64_t kLimit = 1 << 20;
  auto contexts = quiet_contexts(ranks, {.device = kLimit});
  const auto start = [&](Context& context, std::int64_t count) {
    SmallModel model({{"a", count}});
    auto engine = Engine::initialize(model, make_config({.stage = stage}), {.context = &context});
    model.run(engine, 1);
    SIFR_CHECK_RANK(engine.step().outcome == Outcome::kUpdated);
  };
  run_ranks(contexts, [&](Context& context) {
    try {
      start(context, 1'000'000);
    } catch (const OutOfMemory& error) {
      const std::string text = error.what();
      SIFR_CHECK_RANK(text.find("the plan needs ") == 0);
      SIFR_CHECK_RANK(text.find("limit of 1.00 MiB are free") != std::string::npos);
      SIFR_CHECK_RANK(text.find(" in all, limit 1.00 MiB") != std::string::npos);
      SIFR_CHECK_RANK(text.find("weights") != std::string::npos);
      SIFR_CHECK_RANK(error.table().row(Tier::kDevice, Purpose::kOptimizer).refused > 0);
      SIFR_CHECK_RANK(error.table().total(Tier::kDevice).refused > kLimit);
      SIFR_CHECK_RANK(error.table().total(Tier::kDevice).now == 0);
      SIFR_CHECK_RANK(context.device().account().table().total(Tier::kDevice).now == 0);
      return start(context, 1000);
    }
    throw std::runtime_error("no OutOfMemory");
  });
}

TEST_CASE("a plan that the machine has not for all ranks is an OutOfMemory at start on each",
          "[engine][MEM09]") {
  const int stage = GENERATE(0, 3);
  const int ranks = GENERATE(1, 3);
  auto contexts = quiet_contexts(ranks);
  // 16 bytes a parameter: together the ranks need 1.5 times what there is, at stage 0 each 1.5 / 3.
  const std::int64_t whole = available_bytes() / 2 * 3 / 16;
  const std::int64_t count = stage == 0 ? whole / ranks : whole;
  run_ranks(contexts, [&](Context& context) {
    SmallModel model({{"a", count}});
    try {
      (void)Engine::initialize(model, make_config({.stage = stage}), {.context = &context});
    } catch (const OutOfMemory& error) {
      const std::string text = error.what();
      SIFR_CHECK_RANK(text.find("the plan needs ") == 0);
      SIFR_CHECK_RANK(text.find("the machine has ") != std::string::npos);
      SIFR_CHECK_RANK(error.table().row(Tier::kDevice, Purpose::kOptimizer).refused > 0);
      SIFR_CHECK_RANK(error.table().total(Tier::kDevice).now == 0);
      context.barrier();  // the group lives on
      return;
    }
    SIFR_CHECK_RANK(false);
  });
}

TEST_CASE("a second engine that finds no memory leaves the first one usable", "[engine]") {
  auto contexts = quiet_contexts(1);
  SmallModel model;
  auto engine =
      Engine::initialize(model, make_config({.stage = 3}), {.context = &contexts.front()});
  SmallModel huge({{"huge", std::int64_t{1} << 50}});
  CHECK_THAT(error_of([&] {
               static_cast<void>(Engine::initialize(
                   huge, make_config({.stage = 3}), {.context = &contexts.front()}));
             }),
             Catch::StartsWith("OutOfMemory: "));
  model.run(engine, 1);
  CHECK(engine.step().outcome == Outcome::kUpdated);
}

TEST_CASE("room that is missing on one rank stops all, and the others hear which",
          "[engine][MEM09]") {
  auto contexts = quiet_contexts(3, {.device = 1 << 20});
  run_ranks(contexts, [](Context& context) {
    std::optional<Charge> of_another;
    if (context.rank() == 1)
      of_another = context.device().account().charge(1'000'000, Purpose::kActivation);
    SmallModel model({{"a", 10'000}});
    const auto start = [&] {
      static_cast<void>(
          Engine::initialize(model, make_config({.stage = 3}), {.context = &context}));
    };
    const std::string error = error_of(start);
    SIFR_CHECK_RANK(error.starts_with("OutOfMemory: the plan needs "));
    const bool is_told = error.find("more than rank 1 has") != std::string::npos;
    SIFR_CHECK_RANK(is_told == (context.rank() != 1));
    of_another.reset();
    start();
  });
}

std::ptrdiff_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder),
                       std::filesystem::directory_iterator());
}

// A thread that has been joined may be listed for another moment.
std::ptrdiff_t settled_threads() {
  std::ptrdiff_t before = -1;
  std::ptrdiff_t now = entries("/proc/self/task");
  while (now != before) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    before = std::exchange(now, entries("/proc/self/task"));
  }
  return now;
}

TEST_CASE("fifty engines that come and go leave nothing behind", "[engine][MEM05]") {
  const auto cycle = [](int stage, int ranks) {
    auto contexts = quiet_contexts(ranks);
    run_ranks(contexts, [&](Context& context) {
      SmallModel model({{"a", 50'000}, {"b", 50'000}, {"tied", 20'000, 2}});
      auto engine = Engine::initialize(
          model, make_config({.stage = stage, .overlap = true}), {.context = &context});
      for (int step = 0; step < 2; ++step) {
        model.run(engine, 1);
        engine.step();
      }
      static_cast<void>(masters(engine, "a.weight"));
    });
  };
  std::int64_t resident = 0;
  std::ptrdiff_t descriptors = 0;
  std::ptrdiff_t threads = 0;
  for (int i = 0; i < 55; ++i) {
    cycle(i % 4, 1 + i / 4 % 2);
    malloc_trim(0);
    if (i == 15) {
      resident = resident_bytes();
      descriptors = entries("/proc/self/fd");
      threads = settled_threads();
    }
  }
  CHECK(entries("/proc/self/fd") == descriptors);
  CHECK(settled_threads() == threads);
  if (!can_count_allocations()) {
    std::cout << "a sanitizer keeps freed memory: growth of the resident set is not looked at\n";
    return;
  }
  CHECK(resident_bytes() - resident < 1 << 20);
}

}  // namespace
}  // namespace sifr::test
