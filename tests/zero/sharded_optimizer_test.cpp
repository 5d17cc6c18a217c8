#include "zero/sharded_optimizer.hpp"

#include "tests/comm/run_group.hpp"
#include "tests/zero/recording_communicator.hpp"
#include "tests/zero/zero_rank.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <malloc.h>
#include <mutex>

namespace sifr::test {
namespace {

using Gradient = std::function<float(std::int64_t)>;

// Masters of unit 0 after updates of lr 0.1 with the given gradient; whole, from all ranks.
std::vector<float> trained(
    int ranks,
    const std::vector<UnitSpec>& units,
    const ZeroOptions& options,
    const AdamOptions& adam,
    int updates = 1,
    const Gradient& gradient = [](std::int64_t) { return 1.0F; }) {
  std::vector<std::vector<float>> slices(static_cast<std::size_t>(ranks));
  run_group(ranks, [&](Communicator& communicator) {
    ZeroRank rank(units, options, communicator, adam);
    rank.set_masters(0, 2);
    for (int update = 1; update <= updates; ++update) {
      for (int u = rank.layout.unit_count() - 1; u >= 0; --u)
        rank.close(u, gradient);
      rank.finish();
      rank.optimizer.update({.lr = 0.1, .update = update, .factor = 1 / static_cast<float>(ranks)});
      rank.reducer.begin_step();
    }
    slices[static_cast<std::size_t>(communicator.rank())] = rank.masters(0);
  });
  std::vector<float> whole;
  for (const auto& slice : slices)
    whole.insert(whole.end(), slice.begin(), slice.end());
  whole.resize(static_cast<std::size_t>(units[0].parameters[0].count));
  return whole;
}

TEST_CASE("the first update moves by the learning rate", "[zero]") {
  const ZeroOptions options{.stage = GENERATE(0, 1, 2, 3)};
  const int ranks = GENERATE(1, 3);
  UnitSpec spec = unit("a", 700, GENERATE(DType::kFloat32, DType::kBFloat16));
  CHECK(trained(ranks, {spec}, options, {})[699] == Approx(1.9));
  CHECK(trained(ranks, {spec}, options, {.weight_decay = 0.5})[699] == Approx(2 * 0.95 - 0.1));
  spec.parameters[0].lr_scale = 0.5F;
  CHECK(trained(ranks, {spec}, options, {})[699] == Approx(1.95));
  spec.parameters[0].decay = false;
  CHECK(trained(ranks, {spec}, options, {.weight_decay = 0.5})[699] == Approx(1.95));
}

TEST_CASE("L2 decay joins the gradient, and its scale does not matter to Adam", "[zero]") {
  const ZeroOptions options{.stage = GENERATE(0, 1, 2, 3)};
  const AdamOptions l2{.weight_decay = 0.5, .decoupled = false};
  CHECK(trained(2, {unit("a", 700)}, options, l2)[0] == Approx(1.9));
  const auto against = [](std::int64_t) { return -2.0F; };  // and 0.5 · 2 for it
  CHECK(trained(2, {unit("a", 700)}, options, l2, 1, against)[0] == Approx(2.1));
}

TEST_CASE("without bias correction the first update is small", "[zero]") {
  const AdamOptions plain{.bias_correction = false};
  CHECK(trained(1, {unit("a", 1)}, {.stage = 1}, plain)[0] ==
        Approx(2 - 0.1 * 0.1 / std::sqrt(0.001)).epsilon(1e-6));
}

TEST_CASE("stages and chunks change no bit", "[zero]") {
  const std::vector<UnitSpec> units = {
      unit("a", 20'000), unit("b", 5003, DType::kBFloat16), frozen(unit("ice", 300)), unit("c", 1)};
  const int ranks = GENERATE(1, 2, 3);
  const Gradient gradient = [](std::int64_t i) { return std::sin(static_cast<float>(i)); };
  const AdamOptions adam{.weight_decay = 0.1};
  const auto first = trained(ranks, units, {.stage = 0}, adam, 3, gradient);
  for (const int stage : {0, 1, 2, 3}) {
    for (const std::int64_t chunk : {0, 1, 1009, 4096, 1 << 20}) {
      const auto other = trained(ranks, units, {.stage = stage, .chunk = chunk}, adam, 3, gradient);
      CHECK(std::memcmp(other.data(), first.data(), first.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("a chunk bounds what is updated at a time, in whole quanta", "[zero]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const auto longest = [&](std::int64_t chunk) {
    std::int64_t result = 0;
    run_group(1, [&](Communicator& communicator) {
      const ZeroRank rank(
          {unit("a", 700), unit("b", 70'000)}, {.stage = stage, .chunk = chunk}, communicator);
      result = rank.optimizer.longest_piece();
    });
    return result;
  };
  CHECK(longest(1) == 256);
  CHECK(longest(256) == 256);
  CHECK(longest(1009) == 1024);
  CHECK(longest(0) == kernels::kGrain);
  CHECK(longest(std::numeric_limits<std::int64_t>::max()) == kernels::kGrain);
}

std::size_t heap_bytes() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST_CASE("what an optimizer keeps does not grow with the number of its chunks", "[zero][MEM03]") {
  const auto kept = [](std::int64_t chunk) {
    RecordingCommunicator communicator(0, 1);
    const std::size_t before = heap_bytes();
    ZeroRank rank({unit("a", 1 << 20)}, {.stage = 1, .chunk = chunk}, communicator);
    for (int update = 1; update <= 2; ++update) {
      static_cast<void>(rank.optimizer.squared_norm());
      rank.optimizer.update({.lr = 0.1, .update = update});
    }
    return heap_bytes() - before;
  };
  CHECK(kept(256) <= kept(0) + 1024);
}

// The norm² and the first bad parameter over all ranks.
struct Found {
  double squares = 0;
  std::int64_t non_finite = -1;
};
Found norm_of(int ranks,
              const std::vector<UnitSpec>& units,
              const ZeroOptions& options,
              const std::function<float(int unit, std::int64_t element)>& gradient) {
  std::mutex mutex;
  ExactSum sum;
  Found found;
  run_group(ranks, [&](Communicator& communicator) {
    ZeroRank rank(units, options, communicator);
    for (int u = rank.layout.unit_count() - 1; u >= 0; --u) {
      if (rank.layout.unit(u).gradient_bytes > 0)
        rank.close(u, [&](std::int64_t i) { return gradient(u, i); });
    }
    rank.finish();
    const ShardedOptimizer::Norm norm = rank.optimizer.squared_norm();
    const std::scoped_lock lock(mutex);
    sum.add(norm.squares);
    if (norm.non_finite >= 0) found.non_finite = norm.non_finite;
  });
  found.squares = sum.value();
  return found;
}

TEST_CASE("each element counts once in the norm, on any number of ranks",
          "[zero][GRD01][GRD13][GRD15]") {
  const int ranks = GENERATE(1, 2, 3, 4);
  const ZeroOptions options{.stage = GENERATE(0, 1, 2, 3)};
  const auto per_rank = 1 / static_cast<float>(ranks == 3 ? 1 : ranks);  // exact
  const std::vector<UnitSpec> units = {
      unit("large", 1031), unit("small", 1), frozen(unit("ice", 100)), unit("none", 0)};
  const Found found = norm_of(ranks, units, options, [&](int u, std::int64_t i) {
    if (u == 0) return i == 1030 ? 3 * per_rank : 0;
    return 4 * per_rank;
  });
  CHECK(found.squares == (ranks == 3 ? 225 : 25));
  CHECK(found.non_finite == -1);
}

TEST_CASE("a gradient that is not finite is found with its parameter", "[zero][PRE05]") {
  const float bad = GENERATE(
      as<float>{}, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN());
  const std::int64_t where = GENERATE(0, 255, 256, 699);
  const std::vector<UnitSpec> units = {unit("a", 300), unit("b", 700), unit("c", 300)};
  const Found found = norm_of(2, units, {.stage = GENERATE(0, 3)}, [&](int u, std::int64_t i) {
    return u == 1 && i == where ? bad : 1.0F;
  });
  CHECK(found.non_finite == 1);
  CHECK(found.squares == Approx(4 * 1300).margin(4 * 256));
}

}  // namespace
}  // namespace sifr::test
