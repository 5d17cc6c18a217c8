#include "zero/gradient_memory.hpp"

#include "device/device.hpp"
#include "tests/zero/recording_communicator.hpp"
#include "tests/zero/unit_specs.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>

namespace sifr::test {
namespace {

constexpr std::int64_t kUnitBytes = 512 * 4;

std::vector<UnitSpec> four_units() {
  return {unit("a", 512), unit("b", 512), unit("c", 512), unit("d", 512)};
}

struct Rank {
  explicit Rank(const ZeroOptions& wanted, const std::vector<UnitSpec>& units = four_units())
      : options(wanted),
        communicator(0, 2),
        layout(units, 2),
        plan(make_memory_plan(layout, options)),
        memory(layout, options, plan, communicator) {}
  std::int64_t open(int unit) {
    REQUIRE(memory.open(unit));
    return memory.at(unit) - base();
  }
  void close(int unit) { memory.close(unit); }
  void retire(int unit) { memory.retire(unit, communicator.stream()); }
  const std::byte* base() {
    if (base_ == nullptr) base_ = memory.at(0);
    return base_;
  }
  ZeroOptions options;
  RecordingCommunicator communicator;
  Layout layout;
  MemoryPlan plan;
  GradientMemory memory;
  const std::byte* base_ = nullptr;
};

TEST_CASE("at stages 0 and 1 every unit has its place for good", "[zero]") {
  Rank rank({.stage = GENERATE(0, 1)});
  CHECK(rank.memory.ring_bytes() == 0);
  for (int round = 0; round < 2; ++round) {
    for (const int u : {0, 1, 2, 3})
      CHECK(rank.open(u) == u * kUnitBytes);  // all open at one time
    for (const int u : {3, 2, 1, 0}) {
      rank.close(u);
      rank.retire(u);
    }
  }
}

TEST_CASE("at stages 2 and 3 two neighbours share a ring", "[zero]") {
  Rank rank({.stage = GENERATE(2, 3)});
  CHECK(rank.memory.ring_bytes() == 2 * kUnitBytes);
  std::vector<std::int64_t> places;
  for (const int u : {3, 2, 1, 0}) {
    places.push_back(rank.open(u));
    rank.close(u);
    rank.retire(u);
  }
  CHECK(places == std::vector<std::int64_t>{0, kUnitBytes, 0, kUnitBytes});
}

TEST_CASE("the ring is as large as the two largest neighbours", "[zero][PAR18]") {
  Rank rank({.stage = 2}, {unit("a", 5120), unit("b", 512), unit("c", 3072), unit("d", 3072)});
  CHECK(rank.memory.ring_bytes() == (3072 + 3072) * 4);
  CHECK(rank.open(3) == 0);
  rank.close(3);
  CHECK(rank.open(2) == 3072 * 4);
}

TEST_CASE("a unit lies where its neighbours find room beside it", "[zero]") {
  Rank rank({.stage = GENERATE(2, 3)}, {unit("a", 512), unit("b", 512), unit("c", 1536)});
  const auto reduce = [&](int unit) {
    rank.close(unit);
    rank.retire(unit);
  };
  rank.open(2);  // a rank may leave c out, then take it after b
  reduce(2);
  for (int step = 0; step < 4; ++step) {
    rank.open(1);
    rank.open(2);
    reduce(1);
    reduce(2);
    rank.open(0);
    reduce(0);
  }
}

TEST_CASE("one unit of any size fits beside its open neighbour, whatever came before", "[zero]") {
  std::mt19937 random(GENERATE(1, 2, 3, 4, 5, 6, 7, 8));
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  std::vector<UnitSpec> units;
  for (int u = 0; u < 9; ++u)
    units.push_back(unit("u" + std::to_string(u), 1 + below(9000)));
  Rank rank({.stage = 2}, units);
  std::vector<int> pending;
  const auto flush = [&] {
    for (const int unit : pending)
      rank.retire(unit);
    pending.clear();
  };
  const auto open = [&](int unit) {
    if (rank.memory.open(unit)) return;
    flush();
    REQUIRE(rank.memory.open(unit));
  };
  for (int round = 0; round < 60; ++round) {
    int held = below(9);
    open(held);
    for (int i = below(12); i > 0; --i) {
      const int next = std::clamp(held + (below(2) == 0 ? -1 : 1), 0, 8);
      if (next == held) continue;
      open(next);
      rank.close(held);
      pending.push_back(held);
      held = next;
      if (below(3) == 0) flush();
    }
    rank.close(held);
    pending.push_back(held);
  }
}

TEST_CASE("units with several leases keep places outside the ring", "[zero]") {
  Rank rank(
      {.stage = 3},
      {unit("tied", 512, DType::kFloat32, 2), unit("b", 512), unit("c", 512), unit("d", 512)});
  CHECK(rank.memory.ring_bytes() == 2 * kUnitBytes);
  REQUIRE(rank.memory.open(0));
  const std::byte* tied = rank.memory.at(0);
  for (const int u : {3, 2, 1}) {
    REQUIRE(rank.memory.open(u));
    CHECK(std::abs(rank.memory.at(u) - tied) >= kUnitBytes);
    rank.close(u);
    rank.retire(u);
  }
  CHECK(rank.memory.at(0) == tied);
}

TEST_CASE("pending gradients in the way must be reduced first", "[zero]") {
  Rank rank({.stage = 2});
  rank.open(3);
  rank.close(3);
  rank.open(2);
  rank.close(2);
  CHECK_FALSE(rank.memory.open(1));
  rank.retire(3);
  CHECK(rank.open(1) == 0);
}

TEST_CASE("open gradients in the way are an OutOfMemory that names them", "[zero]") {
  Rank rank({.stage = 2});
  rank.open(3);
  rank.open(1);
  REQUIRE(rank.memory.open(0));  // and a unit that contributes zeros needs no place
  CHECK_THROWS_WITH(rank.memory.require_place(0),
                    Catch::Contains("the gradient ring of 0.01 MiB has no room for unit 'a' (0.01 "
                                    "MiB) while gradients of 'd', 'b' are open"));
  rank.close(3);
  rank.retire(3);
  CHECK(rank.open(0) == 0);
}

TEST_CASE("a place is not given again before its reduction is done", "[zero][COM01][COM04]") {
  Rank rank({.stage = GENERATE(0, 2)});
  Stream worker = rank.communicator.device().make_stream("reduce");
  std::atomic<bool> is_reduced = false;
  rank.open(3);
  rank.close(3);
  worker.submit([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    is_reduced = true;
  });
  rank.memory.retire(3, worker);
  rank.open(3);
  CHECK((rank.options.stage == 2 || is_reduced));  // at stage 2 there is room behind it
  rank.close(3);
  rank.memory.retire(3, worker);
  rank.open(2);
  CHECK(is_reduced);
  rank.memory.clear();
}

TEST_CASE("after clear nothing is open or pending", "[zero]") {
  Rank rank({.stage = GENERATE(1, 2)});
  rank.open(3);
  rank.open(2);
  rank.close(2);
  rank.memory.clear();
  rank.open(1);
  rank.open(0);
}

TEST_CASE("debug mode poisons gradients before they are opened and once they are reduced",
          "[zero]") {
  Rank rank({.stage = GENERATE(0, 1, 2, 3), .poison = true});
  const auto* floats = reinterpret_cast<const volatile float*>(rank.base());
  CHECK(std::isnan(floats[0]));
  CHECK(std::isnan(floats[2 * 512 - 1]));
  REQUIRE(rank.memory.open(0));
  auto* own = reinterpret_cast<volatile float*>(rank.memory.at(0));
  own[0] = 1;
  own[511] = 1;
  rank.close(0);
  CHECK(own[0] == 1);
  rank.retire(0);
  CHECK(std::isnan(own[0]));
  CHECK(std::isnan(own[511]));
}

}  // namespace
}  // namespace sifr::test
