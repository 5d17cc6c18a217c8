#include "tests/comm/run_group.hpp"
#include "tests/support/count_allocations.hpp"

#include <catch2/catch.hpp>

#include <iostream>
#include <vector>

using namespace sifr;
using namespace sifr::test;

TEST_CASE("collectives allocate nothing from the third call on", "[comm]") {
  if (!can_count_allocations()) {
    std::cout << "[skipped] a sanitizer brings its own allocator\n";
    return;
  }
  run_group(3, [](Communicator& group) {
    std::vector<float> values(3000);
    std::vector<float> sum(1000);
    const View whole = {reinterpret_cast<std::byte*>(values.data()), 3000, DType::kFloat32};
    const View result = {reinterpret_cast<std::byte*>(sum.data()), 1000, DType::kFloat32};
    const ReducePart reduce = {
        .whole = group.rank() == 1 ? View{} : whole, .slice_count = 1000, .sum = result};
    const GatherPart gather = {result, whole};
    Allocations before;
    for (int step = 0; step < 10; ++step) {
      if (step == 2) {
        group.barrier({"every rank has warmed up"});
        before = allocations_so_far();
      }
      group.set_phase("a phase whose name is longer than what a string keeps inside");
      group.reduce_scatter({&reduce, 1}, {"a unit whose name is longer than that"}, group.stream())
          .wait();
      group.all_gather({&gather, 1}, {"a unit whose name is longer than that"}, group.stream())
          .wait();
      group.broadcast({&whole, 1}, step % 3, {"weights"}, group.stream()).wait();
      group.barrier({"end of step"});
    }
    const Allocations made = allocations_so_far() - before;
    group.barrier({"every rank has looked"});
    expect(made == Allocations{}, "no allocation in a steady state");
  });
}
