// Random models under random programs of leases: whatever the trainer does within the rules, stage,
// buckets, window, overlap and debug mode change no bit, and what is left out counts as zeros.
#include "tests/engine/small_engine.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>

namespace sifr::test {
namespace {

constexpr int kSteps = 8;
constexpr int kMicroBatches = 2;

struct Program {
  explicit Program(unsigned seed) : random(seed) {
    const int count = 3 + below(6);
    for (int u = 0; u < count; ++u)
      units.push_back({.name = "u" + std::to_string(u),
                       .count = below(5) == 0 ? below(3) : 1 + below(3000),
                       .gradient_leases = 1 + below(4) / 3,
                       .trainable = below(6) > 0});
    nests = below(2) == 0;
    units.front().trainable = true;
    units.front().count = 700;
    order.resize(units.size());
    std::iota(order.begin(), order.end(), 0);
  }
  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random); }
  std::mt19937 random;
  std::vector<SmallUnit> units;
  std::vector<int> order;  // of the forward pass
  bool nests = false;      // a unit is released once the next one is leased
};

float gradient_of(float weight, int rank, int step, int micro, std::int64_t index) {
  const auto noise = static_cast<float>((index * 7 + rank * 3 + step * 5 + micro) % 11 - 5);
  return 0.01F * noise + 0.1F * weight;
}

// One unit's backward pass: a lease of weights around as many of gradients as it declares, to which
// nothing is added where `adds` is false.
void go_back(Engine& engine,
             const SmallModel& model,
             const SmallUnit& unit,
             int step,
             int micro,
             bool adds) {
  const Weights weights = engine.weights(model.unit(unit.name));
  if (!unit.trainable) return;
  for (int lease = 0; lease < unit.gradient_leases; ++lease) {
    const Gradients gradients = engine.gradients(model.unit(unit.name));
    if (!adds) continue;
    for (std::int64_t i = 0; i < weights.count(0); ++i) {
      gradients.data<float>(0)[i] +=
          gradient_of(weights.data<float>(0)[i], engine.rank(), step, micro, i);
    }
  }
}

// Steps come in fours: with a new order; with the same, less what was left out last; with every
// unit, so that the order is known to all; and one in which each rank leaves out what it likes.
enum class Step { kNewOrder, kSameOrder, kWithAll, kRanksDiffer };
Step kind_of(int step) {
  return static_cast<Step>(step % 4);
}

// Whether a rank leaves a unit out of a micro-batch. Where leases nest it is all units or none, so
// that releases keep their places too.
bool is_left_out(bool nests, int rank, int unit, int step, int micro) {
  if (kind_of(step) == Step::kWithAll) return false;
  if (kind_of(step) == Step::kSameOrder)
    return is_left_out(nests, rank, unit, step - 1, kMicroBatches - 1);
  const bool ranks_differ = kind_of(step) == Step::kRanksDiffer;
  const int number =
      (ranks_differ ? rank * 31 : 0) + (nests ? 0 : unit * 17) + step * 7 + micro * 3;
  return number % 5 == 0;
}

// `adds_zeros`: what is left out is leased all the same, and nothing added.
std::string run(const Program& fresh, const SmallConfig& config, int ranks, bool adds_zeros) {
  const auto body = [&](Engine& engine, SmallModel& model) {
    Program program = fresh;  // every rank draws the same
    for (int step = 0; step < kSteps; ++step) {
      if (kind_of(step) == Step::kNewOrder)
        std::shuffle(program.order.begin(), program.order.end(), program.random);
      for (int micro = 0; micro < kMicroBatches; ++micro) {
        const auto adds = [&](int u) {
          return !is_left_out(program.nests, engine.rank(), u, step, micro);
        };
        const auto uses = [&](int u) { return adds_zeros || adds(u); };
        std::optional<Weights> before;
        for (const int u : program.order) {
          if (!uses(u)) continue;
          Weights weights = engine.weights(model.unit(u));
          before.reset();
          if (program.nests) before.emplace(std::move(weights));
        }
        before.reset();
        for (auto u = program.order.rbegin(); u != program.order.rend(); ++u) {
          if (!uses(*u)) continue;
          const SmallUnit& unit = program.units[static_cast<std::size_t>(*u)];
          go_back(engine, model, unit, step, micro, adds(*u));
        }
        engine.step();
      }
      if (step % 3 != 1) continue;
      const Evaluation evaluation = engine.evaluate();
      for (const int u : program.order)
        static_cast<void>(engine.weights(model.unit(u)));
    }
    return engine.weights_hash();
  };
  return on_ranks(ranks, config, body, SmallModel(fresh.units));
}

TEST_CASE("random programs of leases come to the same bits at every stage",
          "[engine][GRD08][GRD10][COM01][COM02][PAR12]") {
  const unsigned seed = GENERATE(range(1U, 41U));
  Program program(seed);
  const int ranks = 1 + program.below(4);
  SmallConfig config{
      .accumulation = kMicroBatches,
      .clip = 0.5,
      .optimizer =
          R"({"type": "AdamW", "params": {"lr": 0.01, "betas": [0.9, 0.95], "weight_decay": 0.1}})"};
  const std::string expected = run(program, config, ranks, true);
  for (int stage = 0; stage <= 3; ++stage) {
    config.stage = stage;
    config.overlap = program.below(2) == 0;
    config.sifr = program.below(4) == 0 ? R"("debug": true,)" : "";
    config.zero = fmt::format(
        R"("reduce_bucket_size": {}, "allgather_bucket_size": {}, "stage3_prefetch_bucket_size": {},
        "stage3_max_live_parameters": {}, "stage3_param_persistence_threshold": {}, "stage3_max_reuse_distance": {},)",
        program.below(4) * program.below(2000),
        1 + program.below(4000),
        program.below(6000),
        program.below(6000),
        program.below(1000),
        program.below(9000));
    INFO("seed " << seed << ", stage " << stage << ", " << ranks << " ranks, " << config.zero);
    CHECK(run(program, config, ranks, false) == expected);
  }
}

}  // namespace
}  // namespace sifr::test
