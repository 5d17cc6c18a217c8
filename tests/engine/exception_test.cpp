// Exceptions out of the trainer's own code. On one rank of three: the others learn at once who
// failed and why. In a group of one: the engine is usable again.
#include "tests/engine/small_engine.hpp"

#include <catch2/catch.hpp>

using Catch::Contains;
using Catch::StartsWith;

namespace sifr::test {
namespace {

constexpr int kRanks = 3;

enum class Throws { kNowhere, kInForward, kInBackward, kInGradients, kAfterClosing };

// Throws where it is told to, on one rank, in its third micro-batch.
class ThrowingModel final : public SmallModel {
 public:
  ThrowingModel(Throws where, int rank) : where_(where), rank_(rank) {}
  Loss forward(Engine& engine, const Batch&) override {
    ++micro_batches_;
    const Weights weights = engine.weights(unit("a"));
    throw_if(engine, Throws::kInForward);
    return {1.0, 1.0};
  }

  void backward(Engine& engine, float) override {
    throw_if(engine, Throws::kInBackward);
    for (const char* name : {"c", "b", "a"}) {
      const Weights weights = engine.weights(unit(name));
      const Gradients gradients = engine.gradients(unit(name));
      if (name[0] == 'b') throw_if(engine, Throws::kInGradients);
      for (std::int64_t i = 0; i < gradients.count(0); ++i)
        gradients.data<float>(0)[i] += 0.5F;
    }
    throw_if(engine, Throws::kAfterClosing);
  }

  void mend() noexcept { where_ = Throws::kNowhere; }

 private:
  void throw_if(const Engine& engine, Throws where) const {
    if (where == where_ && engine.rank() == rank_ && micro_batches_ == 3)
      throw std::runtime_error("out of apples");
  }

  Throws where_;
  int rank_;
  int micro_batches_ = 0;
};

std::vector<std::string> train(const SmallConfig& config, Throws where, bool uses_own_loop) {
  auto contexts = quiet_contexts(kRanks);
  std::vector<std::string> texts(kRanks);
  const auto one = [&](int rank) {
    Context context = std::move(contexts[static_cast<std::size_t>(rank)]);
    ThrowingModel model(where, 1);
    auto engine = Engine::initialize(model, make_config(config), {.context = &context});
    for (int step = 0; step < 6; ++step) {
      if (uses_own_loop) {
        static_cast<void>(model.forward(engine, step));
        model.backward(engine, 1);
      } else {
        engine.forward(step);
        engine.backward();
      }
      engine.step();
    }
  };
  for (const RankError& error : collect_rank_errors(kRanks, one))
    texts[static_cast<std::size_t>(error.rank)] = describe(error.error);
  return texts;
}

TEST_CASE("an exception in one rank's model reaches the others with rank and text",
          "[engine][COM17]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const SmallConfig config{.stage = stage, .overlap = GENERATE(false, true), .accumulation = 2};
  const Throws where = GENERATE(
      Throws::kInForward, Throws::kInBackward, Throws::kInGradients, Throws::kAfterClosing);
  const auto errors = train(config, where, false);
  CHECK(errors[1] == "out of apples");
  for (const int rank : {0, 2}) {
    INFO(errors[static_cast<std::size_t>(rank)]);
    CHECK_THAT(errors[static_cast<std::size_t>(rank)],
               StartsWith("CommError: rank 1 failed: exception in ") && Contains("out of apples"));
    const bool is_told =
        errors[static_cast<std::size_t>(rank)].find("unit 'b'") != std::string::npos;
    CHECK(is_told == (where == Throws::kInGradients));
  }
}

TEST_CASE("an exception in one rank's own loop reaches the others with rank and unit",
          "[engine][COM17]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const auto errors = train({.stage = stage, .accumulation = 2}, Throws::kInGradients, true);
  CHECK(errors[1] == "out of apples");
  for (const int rank : {0, 2}) {
    INFO(errors[static_cast<std::size_t>(rank)]);
    CHECK_THAT(errors[static_cast<std::size_t>(rank)],
               StartsWith("CommError: rank 1 failed: the gradients of unit 'b' were given up"));
  }
}

TEST_CASE("an exception at the start reaches the others with rank and text", "[engine]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const bool in_fill = GENERATE(false, true);
  auto contexts = quiet_contexts(kRanks);
  std::vector<std::string> texts(kRanks);
  const auto one = [&](int rank) {
    const auto throw_if = [&](bool here) {
      if (here && rank == 1) throw std::runtime_error("out of apples");
    };
    const auto declare = [&](Units& units) {
      throw_if(!in_fill);
      const Fill fill = [&](std::int64_t, std::span<float>) { throw_if(in_fill); };
      static_cast<void>(units.add("a", {{.name = "a.weight", .shape = {3000}, .fill = fill}}));
    };
    static_cast<void>(Engine::initialize(declare,
                                         make_config({.stage = stage}),
                                         {.context = &contexts[static_cast<std::size_t>(rank)]}));
  };
  for (const RankError& error : collect_rank_errors(kRanks, one))
    texts[static_cast<std::size_t>(error.rank)] = describe(error.error);
  CHECK(texts[1] == "out of apples");
  for (const int rank : {0, 2}) {
    CHECK(texts[static_cast<std::size_t>(rank)] ==
          "CommError: rank 1 failed: Engine::initialize: out of apples");
  }
}

TEST_CASE("in a group of one an exception costs the step's gradients and no more", "[engine]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const SmallConfig config{.stage = stage, .overlap = GENERATE(false, true), .accumulation = 2};
  const Throws where = GENERATE(
      Throws::kInForward, Throws::kInBackward, Throws::kInGradients, Throws::kAfterClosing);
  const auto train_alone = [&](Throws throws) {
    auto contexts = quiet_contexts(1);
    ThrowingModel model(throws, 0);
    auto engine = Engine::initialize(model, make_config(config), {.context = &contexts.front()});
    int steps = 0;
    while (steps < 3) {
      try {
        engine.forward(0);
        engine.backward();
        steps += engine.step().outcome == Outcome::kUpdated ? 1 : 0;
      } catch (const std::runtime_error& error) {
        CHECK(std::string(error.what()) == "out of apples");
        if (where == Throws::kInGradients) {
          CHECK_THAT(error_of([&] { engine.step(); }),
                     StartsWith("CommError: rank 0 failed: exception in backward: out of apples"));
        }
        engine.drop_gradients();
        model.mend();
      }
    }
    return engine.weights_hash();
  };
  CHECK(train_alone(where) == train_alone(Throws::kNowhere));
}

TEST_CASE("a backward that gives gradients up and returns fails all the same", "[engine]") {
  struct Careless final : SmallModel {
    void backward(Engine& engine, float) override {
      Gradients gradients = engine.gradients(unit("b"));
      if (engine.rank() == 0) gradients.abandon();
    }
  };
  const SmallConfig config{.stage = GENERATE(0, 1, 2, 3)};
  const int ranks = GENERATE(1, 2);
  auto contexts = quiet_contexts(ranks);
  const auto one = [&](int rank) {
    Context context = std::move(contexts[static_cast<std::size_t>(rank)]);
    Careless model;
    auto engine = Engine::initialize(model, make_config(config), {.context = &context});
    engine.backward();
    engine.step();
  };
  const auto errors = collect_rank_errors(ranks, one);
  REQUIRE(errors.size() == static_cast<std::size_t>(ranks));
  for (const RankError& error : errors) {
    CHECK_THAT(describe(error.error),
               Contains(error.rank == 0 ? "UsageError: gradients were given up"
                                        : "exception in backward: gradients were given up"));
  }
}

TEST_CASE("gradients cannot be dropped under an open lease", "[engine]") {
  auto contexts = quiet_contexts(1);
  SmallModel model;
  auto engine = Engine::initialize(
      model, make_config({.stage = GENERATE(0, 1, 2, 3)}), {.context = &contexts.front()});
  {
    const Weights weights = engine.weights(model.unit("b"));
    Gradients gradients = engine.gradients(model.unit("b"));
    gradients.abandon();
    gradients.abandon();  // again is nothing
    CHECK(error_of([&] { engine.drop_gradients(); }) ==
          "UsageError: drop_gradients(): a lease on unit 'b' is open: end its scope first");
    CHECK_THAT(error_of([&] { engine.step(); }), Contains("gradients of unit 'b' were given up"));
  }
  engine.drop_gradients();
  model.run(engine, 1);
  CHECK(engine.step().outcome == Outcome::kUpdated);
}

TEST_CASE("something thrown that is no exception ends the group too", "[engine]") {
  struct OddModel final : SmallModel {
    Loss forward(Engine& engine, const Batch&) override {
      if (engine.rank() == 1) throw 3;  // NOLINT(hicpp-exception-baseclass)
      return {};
    }
  };
  const Config config = make_config({.stage = GENERATE(0, 1, 2, 3)});
  auto contexts = quiet_contexts(2);
  const auto one = [&](int rank) {
    OddModel model;
    auto engine =
        Engine::initialize(model, config, {.context = &contexts[static_cast<std::size_t>(rank)]});
    engine.forward(0);
    engine.step();
  };
  const auto errors = collect_rank_errors(2, one);
  REQUIRE(errors.size() == 2);
  for (const RankError& error : errors) {
    CHECK(describe(error.error) ==
          (error.rank == 1 ? "something that is no std::exception"
                           : "CommError: rank 1 failed: exception in forward: one that is no "
                             "std::exception"));
  }
}

}  // namespace
}  // namespace sifr::test
