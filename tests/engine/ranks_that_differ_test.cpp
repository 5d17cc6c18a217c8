// Three ranks of which one does something else: it works where the rules allow it, and is an error
// on every rank that names what differs where they do not; never a hang.
#include "tests/engine/small_engine.hpp"

#include <catch2/catch.hpp>

#include <limits>

using Catch::Contains;
using Catch::StartsWith;

namespace sifr::test {
namespace {

constexpr int kRanks = 3;

// Units whose names are found in no other word of a message.
SmallModel fruit() {
  return SmallModel({{"apple"}, {"berry"}, {"cherry"}});
}

SmallConfig any_config() {
  const int stage = GENERATE(0, 1, 2, 3);
  const bool overlap = GENERATE(false, true);
  const std::string zero = GENERATE("", R"("reduce_bucket_size": 300,
    "stage3_prefetch_bucket_size": 0, "stage3_max_live_parameters": 0, "stage3_param_persistence_threshold": 0,)");
  return {.stage = stage, .overlap = overlap, .zero = zero};
}

// A CommError on every rank that names rank 1 beside rank 0 and the unit that comes too late or too
// often. (What rank 0 is at then may be the end of its micro-batch.)
void check_parted(const std::vector<std::string>& errors, const std::string& unit) {
  for (const std::string& error : errors) {
    INFO(error);
    CHECK_THAT(error, StartsWith("CommError: ") && Contains(unit));
    CHECK_THAT(error, Contains("rank 0") && Contains("rank 1"));
  }
}

void step_thrice(Engine& engine, const std::function<void()>& micro_batch) {
  for (int step = 0; step < 3; ++step) {
    micro_batch();
    engine.step();
  }
}

TEST_CASE("a rank that reads units in another order ends the group", "[engine]") {
  const auto body = [](Engine& engine, SmallModel& model) {
    step_thrice(engine, [&] {
      if (engine.rank() == 1) static_cast<void>(engine.weights(model.unit("cherry")));
      if (engine.rank() == 1) static_cast<void>(engine.weights(model.unit("berry")));
      model.run(engine, 1);
    });
  };
  check_parted(errors_of_ranks(kRanks, any_config(), body, fruit()), "erry");  // one of two
}

TEST_CASE("a rank that swaps two equal units ends the group, which hears its name", "[engine]") {
  const auto body = [](Engine& engine, SmallModel& model) {
    step_thrice(engine, [&] {
      model.read(engine);
      model.add(engine, "cherry", 1);
      model.add(engine, engine.rank() == 1 ? "apple" : "berry", 1);
      model.add(engine, engine.rank() == 1 ? "berry" : "apple", 1);
    });
  };
  check_parted(errors_of_ranks(kRanks, any_config(), body, fruit()), "berry");
}

// Stage 0 and one bucket: the ranks' collectives are the same up to the roll call.
TEST_CASE("the first place at which orders differ is told, with the step", "[engine]") {
  const SmallModel model({{"apple", 300, 1, false}, {"berry", 300, 1, false}, {"cherry"}});
  const auto body = [](Engine& engine, SmallModel& fruits) {
    for (int micro = 0; micro < 4; ++micro) {
      const bool swaps = engine.rank() == 1 && micro == 3;
      for (const char* name : {"apple", swaps ? "cherry" : "berry", swaps ? "berry" : "cherry"})
        static_cast<void>(engine.weights(fruits.unit(name)));
      fruits.add(engine, "cherry", 1);
      engine.step();
    }
  };
  for (const std::string& error : errors_of_ranks(kRanks, {.accumulation = 2}, body, model)) {
    CHECK_THAT(error,
               StartsWith("CommError: ranks took units in different orders in step 2, micro-batch "
                          "2: rank 0 leases weights of 'berry' where rank 1 leases weights of "
                          "'cherry'; their collectives part where "));
  }
}

TEST_CASE("ranks whose collectives part are told what each was at", "[engine]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const auto body = [](Engine& engine, SmallModel& model) {
    for (int step = 0; step < 3; ++step) {
      const bool swaps = engine.rank() == 1 && step == 2;
      model.read(engine);
      model.add(engine, "cherry", 1);
      model.add(engine, swaps ? "apple" : "berry", 1);
      model.add(engine, swaps ? "berry" : "apple", 1);
      engine.step();
    }
  };
  const SmallConfig config = {.stage = stage, .zero = R"("reduce_bucket_size": 300,)"};
  for (const std::string& error : errors_of_ranks(kRanks, config, body, fruit())) {
    CHECK_THAT(error, StartsWith("CommError: the ranks' calls differ at collective "));
    CHECK_THAT(error,
               Contains("rank 0 was at: step 3, micro-batch 1, ") &&
                   Contains("rank 1 at: step 3, micro-batch 1, ") &&
                   Contains("(first leases weights of 'apple' where the order leases weights of "
                            "'berry')"));
  }
}

TEST_CASE("in a window that cannot hold all units a lease that ends elsewhere is told of",
          "[engine]") {
  const SmallConfig config{
      .stage = 3,
      .overlap = GENERATE(false, true),
      .zero = R"("stage3_prefetch_bucket_size": 0, "stage3_max_live_parameters": 600,
    "stage3_param_persistence_threshold": 0,)"};
  const auto body = [](Engine& engine, SmallModel& model) {
    for (int step = 0; step < 4; ++step) {
      static_cast<void>(engine.weights(model.unit("cherry")));
      {
        const Weights around = engine.weights(model.unit("apple"));
        if (step < 2 || engine.rank() != 1) static_cast<void>(engine.weights(model.unit("berry")));
      }
      static_cast<void>(engine.weights(model.unit("cherry")));
      model.add(engine, "apple", 1);
      engine.step();
    }
  };
  for (const std::string& error : errors_of_ranks(kRanks, config, body, fruit())) {
    INFO(error);
    CHECK_THAT(error,
               StartsWith("CommError: ") && Contains("cherry") &&
                   Contains("must end in the same places on every rank"));
  }
}

TEST_CASE("a rank that leases a unit once more ends the group", "[engine]") {
  const auto body = [](Engine& engine, SmallModel& model) {
    step_thrice(engine, [&] {
      model.run(engine, 1);
      if (engine.rank() == 1) static_cast<void>(engine.weights(model.unit("berry")));
    });
  };
  check_parted(errors_of_ranks(kRanks, any_config(), body, fruit()), "berry");
}

// masters of unit b after three steps in which rank 1 does `on_rank_one`.
std::string trained(const SmallConfig& config,
                    const std::function<void(Engine&, SmallModel&)>& on_rank_one,
                    double weight_of_rank_one = 1) {
  return on_ranks(kRanks, config, [&](Engine& engine, SmallModel& model) {
    for (int step = 0; step < 3; ++step) {
      if (engine.rank() == 1) {
        on_rank_one(engine, model);
      } else {
        model.run(engine, 0.25F * static_cast<float>(engine.rank() + 1));
      }
      engine.step({.weight = engine.rank() == 1 ? weight_of_rank_one : 1});
    }
    return engine.weights_hash();
  });
}

TEST_CASE("a unit that a rank leaves out counts as zeros there", "[engine][GRD10][PAR11]") {
  const SmallConfig config = any_config();
  const std::string zeros = trained(config, [](Engine& engine, SmallModel& model) {
    model.add(engine, "c", 3);
    model.add(engine, "b", 0);
    model.add(engine, "a", 2);
  });
  CHECK(trained(config, [](Engine& engine, SmallModel& model) {
          model.add(engine, "c", 3);
          model.add(engine, "a", 2);
        }) == zeros);
}

TEST_CASE("a unit that no rank used in a step may be used by one in the next", "[engine][ST302]") {
  const auto weights = [](const SmallConfig& config, bool adds_zeros) {
    const auto body = [adds_zeros](Engine& engine, SmallModel& model) {
      for (int step = 0; step < 4; ++step) {
        const bool is_used = step == 0 || (step > 1 && engine.rank() == 0);
        if (is_used || adds_zeros) static_cast<void>(engine.weights(model.unit("expert")));
        model.add(engine, "trunk", 1);
        if (is_used || adds_zeros) model.add(engine, "expert", is_used ? 2 : 0);
        engine.step();
      }
      return engine.weights_hash();
    };
    return on_ranks(kRanks, config, body, SmallModel({{"expert"}, {"trunk"}}));
  };
  const SmallConfig config = any_config();
  CHECK(weights(config, false) == weights(config, true));
}

TEST_CASE("a rank may leave a frozen unit out of its way back from the first step on",
          "[engine][ST302]") {
  const auto weights = [](const SmallConfig& config, bool leaves_out) {
    const auto body = [leaves_out](Engine& engine, SmallModel& model) {
      for (int step = 0; step < 3; ++step) {
        model.read(engine);
        model.add(engine, "head", 1);
        if (!leaves_out || engine.rank() == 0) static_cast<void>(engine.weights(model.unit("ice")));
        model.add(engine, "trunk", 1);
        engine.step();
      }
      return engine.weights_hash();
    };
    return on_ranks(
        kRanks, config, body, SmallModel({{"trunk"}, {"ice", 300, 1, false}, {"head"}}));
  };
  const SmallConfig config = any_config();
  CHECK(weights(config, true) == weights(config, false));
}

// As a trainer with experts does, where each rank's data choose its own.
TEST_CASE("ranks that take different branches train both, as if each had zeros in the other",
          "[engine][ST302]") {
  const auto weights = [](const SmallConfig& config, bool adds_zeros) {
    const auto body = [adds_zeros](Engine& engine, SmallModel& model) {
      const std::string chosen = engine.rank() == 1 ? "right" : "left";
      for (int step = 0; step < 3; ++step) {
        model.add(engine, "trunk", 1);
        for (const std::string name : {"right", "left"}) {
          if (name == chosen || adds_zeros) model.add(engine, name, name == chosen ? 2 : 0);
        }
        engine.step();
      }
      return engine.weights_hash();
    };
    return on_ranks(kRanks, config, body, SmallModel({{"left"}, {"right"}, {"trunk"}}));
  };
  const SmallConfig config = any_config();
  CHECK(weights(config, false) == weights(config, true));
}

TEST_CASE("where units come in another order than declared, the first step needs them all",
          "[engine]") {
  const auto errors = [](const SmallConfig& config, int first_step_without) {
    const auto body = [first_step_without](Engine& engine, SmallModel& model) {
      for (int step = 0; step < 4; ++step) {
        const bool leaves_out = engine.rank() == 1 && step >= first_step_without;
        for (const char* name : {"c", "tied", "a"})
          static_cast<void>(engine.weights(model.unit(name)));
        model.add(engine, "a", 1);
        for (int lease = 0; lease < 2 && !leaves_out; ++lease)
          model.add(engine, "tied", 1);
        model.add(engine, "c", 1);
        engine.step();
      }
    };
    return errors_of_ranks(kRanks, config, body, SmallModel({{"a"}, {"tied", 300, 2}, {"c"}}));
  };
  const SmallConfig config = any_config();
  for (const std::string& error : errors(config, 0))
    CHECK_THAT(error, StartsWith("CommError: "));
  for (const std::string& error : errors(config, 1))
    CHECK(error == "");
}

TEST_CASE("a rank without data takes part with weight 0", "[engine][COM06][GRD16]") {
  const SmallConfig config = any_config();
  const auto nothing = [](Engine&, SmallModel&) {};
  const std::string zeros = trained(
      config, [](Engine& engine, SmallModel& model) { model.run(engine, 0); }, 0);
  CHECK(trained(config, nothing, 0) == zeros);
  CHECK(trained(config, nothing, 1) != zeros);
}

TEST_CASE("a rank that has fewer batches and leaves is named to the others", "[engine][COM06]") {
  const auto body = [](Engine& engine, SmallModel& model) {
    for (int step = 0; step < (engine.rank() == 1 ? 2 : 4); ++step) {
      model.run(engine, 1);
      engine.step();
    }
  };
  const auto errors = errors_of_ranks(kRanks, any_config(), body);
  CHECK(errors[1].empty());
  for (const int rank : {0, 2}) {
    INFO(errors[static_cast<std::size_t>(rank)]);
    CHECK_THAT(errors[static_cast<std::size_t>(rank)],
               StartsWith("CommError: ") && Contains("rank 1"));
  }
}

TEST_CASE("a rank that has one micro-batch fewer and goes on is told where it stands",
          "[engine][COM06]") {
  const auto body = [](Engine& engine, SmallModel& model) {
    for (int step = 0; step < (engine.rank() == 1 ? 2 : 3); ++step) {
      model.run(engine, 1);
      engine.step();
    }
    static_cast<void>(engine.weights_hash());
  };
  for (const std::string& error : errors_of_ranks(kRanks, any_config(), body)) {
    INFO(error);
    CHECK_THAT(error, StartsWith("CommError: ") && Contains("rank 0") && Contains("rank 1"));
  }
}

TEST_CASE("boundary and lr must agree over ranks", "[engine]") {
  const SmallConfig config = any_config();
  const auto with = [&](const std::function<StepOptions(int rank)>& options) {
    return errors_of_ranks(kRanks, config, [&](Engine& engine, SmallModel& model) {
      model.run(engine, 1);
      engine.step(options(engine.rank()));
    });
  };
  for (const std::string& error :
       with([](int rank) { return StepOptions{.boundary = rank != 2}; })) {
    CHECK(error == "UsageError: step(): boundary is true on rank 0 and false on rank 2");
  }
  for (const std::string& error :
       with([](int rank) { return StepOptions{.lr = rank == 1 ? 2 : 3}; })) {
    CHECK(error == "UsageError: step(): lr is 3 on rank 0 and 2 on rank 1");
  }
}

TEST_CASE("an engine of a group that has failed says the same at every call", "[engine]") {
  const auto body = [](Engine& engine, SmallModel& model) {
    model.run(engine, 1);
    const std::string first = error_of([&] { engine.step({.boundary = engine.rank() != 2}); });
    SIFR_CHECK_RANK(!first.empty());
    const std::vector<std::function<void()>> calls = {
        [&] { static_cast<void>(engine.weights(model.unit("a"))); },
        [&] { static_cast<void>(engine.gradients(model.unit("a"))); },
        [&] { engine.forward(0); },
        [&] { engine.backward(); },
        [&] { engine.step(); },
        [&] { engine.drop_gradients(); },
        [&] { engine.synchronize(); },
        [&] { static_cast<void>(engine.evaluate()); },
        [&] { static_cast<void>(engine.evaluate(Residency::kWhole)); },
        [&] { engine.export_weights([](const WeightPiece&) {}); },
        [&] { static_cast<void>(engine.weights_hash()); },
        [&] { static_cast<void>(engine.allocate(100)); },
        [&] { static_cast<void>(engine.charge(100)); }};
    for (const auto& call : calls)
      SIFR_CHECK_RANK(error_of(call) == first);
    // What only tells still answers.
    SIFR_CHECK_RANK(engine.memory().total(Tier::kDevice).now > 0);
    SIFR_CHECK_RANK(engine.size() == kRanks && !engine.is_evaluating() && engine.is_boundary());
  };
  for (const std::string& error : errors_of_ranks(kRanks, any_config(), body))
    CHECK(error == "");
}

TEST_CASE("ranks that declare other models or read other files do not start", "[engine]") {
  const int stage = GENERATE(0, 1, 2, 3);
  auto contexts = quiet_contexts(kRanks);
  const auto start = [&](const std::string& unit_of_rank_two, double clip_of_rank_two) {
    std::vector<std::string> texts;
    const auto one = [&](int rank) {
      Context& context = contexts[static_cast<std::size_t>(rank)];
      SmallModel model({{rank == 2 ? unit_of_rank_two : "a"}});
      const Config config = make_config({.stage = stage, .clip = rank == 2 ? clip_of_rank_two : 1});
      static_cast<void>(Engine::initialize(model, config, {.context = &context}));
    };
    for (const RankError& error : collect_rank_errors(kRanks, one))
      texts.push_back(describe(error.error));
    return texts;
  };
  const std::vector<std::string> models(kRanks,
                                        "UsageError: ranks 0 and 2 declare different models: on "
                                        "rank 0 unit 0 is 'a', on rank 2 unit 0 is 'd'");
  const std::vector<std::string> files(
      kRanks,
      "UsageError: ranks 0 and 2 have different configurations: on "
      "rank 0 /gradient_clipping: 1, on rank 2 /gradient_clipping: 0.5");
  CHECK(start("d", 1) == models);
  CHECK(start("a", 0.5) == files);
  CHECK(start("a", 1).empty());  // all agreed that it failed, so the Contexts serve another start
}

}  // namespace
}  // namespace sifr::test
