// How engines start: what keeps one from it, and what does not.
#include "tests/engine/small_engine.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <span>
#include <stdexcept>
#include <utility>

using Catch::Contains;

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

// What two ranks are told whose models are `first` and `second`.
std::string told_of(const std::vector<Units::Declared>& first,
                    const std::vector<Units::Declared>& second) {
  auto contexts = quiet_contexts(2);
  std::vector<std::string> texts(2);
  run_ranks(contexts, [&](Context& context) {
    const auto declare = [&](Units& units) {
      for (const Units::Declared& unit : context.rank() == 0 ? first : second)
        units.add(unit.name, unit.parameters, unit.gradient_leases);
    };
    texts[static_cast<std::size_t>(context.rank())] = error_of([&] {
      static_cast<void>(
          Engine::initialize(declare, make_config({.is_bf16 = true}), {.context = &context}));
    });
  });
  CHECK(texts[0] == texts[1]);
  return texts[0];
}

TEST_CASE("ranks that declare different models are told the first difference", "[engine]") {
  std::vector<Units::Declared> all;
  for (int u = 0; u < 500; ++u) {
    const std::string name = "layers." + std::to_string(u);
    all.push_back({name, {{.name = name + ".weight", .shape = {2, 3}}}, 1});
  }
  const auto check = [&](const std::string& here, const std::string& there, const auto& change) {
    auto changed = all;
    change(changed);
    CHECK(told_of(all, changed) ==
          "UsageError: ranks 0 and 1 declare different models: on rank 0 " + here + ", on rank 1 " +
              there);
  };
  using Model = std::vector<Units::Declared>;
  check("there are 500 units", "there are 499 units", [](Model& model) { model.pop_back(); });
  check("unit 400 is 'layers.400'", "unit 400 is 'other'", [](Model& model) {
    model[400].name = "other";
    model[401].name = "later";
  });
  const std::string unit = "unit 'layers.400' has ";
  check(unit + "gradient_leases 1", unit + "gradient_leases 2", [](Model& model) {
    model[400].gradient_leases = 2;
  });
  check(unit + "1 parameters", unit + "0 parameters", [](Model& model) {
    model[400].parameters.clear();
  });
  const std::string parameter = "parameter 'layers.400.weight' of unit 'layers.400' has ";
  check(parameter + "shape [2, 3]", parameter + "shape [3, 2]", [](Model& model) {
    model[400].parameters[0].shape = {3, 2};
  });
  check(parameter + "bf16 weights", parameter + "fp32 weights", [](Model& model) {
    model[400].parameters[0].keep_fp32 = true;
  });
  check(parameter + "trainable true", parameter + "trainable false", [](Model& model) {
    model[400].parameters[0].trainable = false;
  });
  check(parameter + "lr_scale 1", parameter + "lr_scale 0.5", [](Model& model) {
    model[400].parameters[0].lr_scale = 0.5F;
  });
}

TEST_CASE("an lr_scale that no learning rate can have is refused by name", "[engine]") {
  for (const float scale : {-1.0F, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    const auto declare = [scale](Units& units) {
      units.add("one", {{.name = "one.weight", .shape = {4}, .lr_scale = scale}});
    };
    CHECK_THROWS_WITH(
        static_cast<void>(Engine::initialize(declare, make_config({}))),
        Catch::Contains("parameter 'one.weight': lr_scale is ") && Catch::Contains("0 or more"));
  }
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

// The figure of a line "  name   1.50 MiB" of the planned memory; empty: there is none.
std::string planned(const std::string& screen, const std::string& name) {
  const std::size_t table = screen.find("planned memory");
  const std::size_t at = table == std::string::npos ? table : screen.find("  " + name + " ", table);
  if (at == std::string::npos) return "";
  const std::size_t first = screen.find_first_not_of(' ', at + 2 + name.size());
  return screen.substr(first, screen.find('\n', first) - first);
}

TEST_CASE("the start screen shows ranks, threads and the plan by purpose", "[engine]") {
  const SmallConfig small{.stage = GENERATE(0, 1, 2, 3), .is_bf16 = GENERATE(false, true)};
  const int ranks = GENERATE(1, 3);
  std::mutex mutex;
  std::vector<std::string> screens;
  const auto log = [&](Level level, std::string_view text) {
    const std::scoped_lock lock(mutex);
    if (level == Level::kInfo && text.find("planned memory") != std::string_view::npos)
      screens.emplace_back(text);
  };
  auto contexts = Context::threads(ranks, {.log = log, .threads = 2, .bind_cores = false});
  MemoryTable table;
  run_ranks(contexts, [&](Context& context) {
    SmallModel model({{"a", 500'000}, {"b", 700'000}});
    const auto engine = Engine::initialize(model, make_config(small), {.context = &context});
    if (context.rank() == 0) table = engine.memory();
  });
  REQUIRE(screens.size() == 1);
  const std::string& screen = screens.front();
  INFO(screen);
  const std::string stage = "ZeRO stage " + std::to_string(small.stage);
  CHECK_THAT(screen,
             Contains(stage + (small.is_bf16 ? ", bf16" : ", fp32") + " weights, 1200000 ") &&
                 Contains("in 2 units\nrank 0 of " + std::to_string(ranks) +
                          ", 2 kernel threads (as asked for), workers not bound to cores\n") &&
                 Contains(" x " + std::to_string(ranks) + " ranks\n"));
  for (std::size_t i = 0; i < kPurposeCount; ++i) {
    const auto purpose = static_cast<Purpose>(i);
    const std::int64_t held = table.row(Tier::kDevice, purpose).now;
    CHECK(planned(screen, std::string(name_of(purpose))) == (held > 0 ? mib(held) : ""));
  }
  CHECK(planned(screen, "sum") == mib(table.total(Tier::kDevice).now));
}

TEST_CASE("each rank asks for its own stretch of a parameter only, all together for the whole",
          "[engine][MEM08]") {
  constexpr int kRanks = 3;
  const std::vector<std::int64_t> counts = {300'001, 70'000, 5};
  std::mutex mutex;
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> asked(counts.size());
  const Engine::Declare declare = [&](Units& units) {
    for (std::size_t p = 0; p < counts.size(); ++p) {
      const std::string name = "p" + std::to_string(p);
      const Fill fill = [&, p](std::int64_t first, std::span<float> values) {
        const std::scoped_lock lock(mutex);
        asked[p].emplace_back(first, first + static_cast<std::int64_t>(values.size()));
      };
      units.add(name, {{.name = name + ".weight", .shape = {counts[p]}, .fill = fill}});
    }
  };
  const Config config = make_config({.stage = GENERATE(1, 2, 3), .is_bf16 = GENERATE(false, true)});
  auto contexts = quiet_contexts(kRanks);
  run_ranks(contexts, [&](Context& context) {
    static_cast<void>(Engine::initialize(declare, config, {.context = &context}));
  });
  for (std::size_t p = 0; p < counts.size(); ++p) {
    std::sort(asked[p].begin(), asked[p].end());
    std::int64_t end = 0;
    for (const auto& [first, last] : asked[p]) {
      CHECK(first == end);  // nothing twice, nothing left out
      end = last;
    }
    CHECK(end == counts[p]);
  }
}

}  // namespace
}  // namespace sifr::test
