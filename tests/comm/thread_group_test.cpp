#include "comm/group.hpp"
#include "tests/comm/collective_sweep.hpp"
#include "tests/comm/run_group.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

using namespace sifr;
using namespace sifr::test;

namespace {

constexpr int kGroupSizes[] = {1, 2, 3, 4, 5};

}  // namespace

TEST_CASE("thread ranks reduce any size as the plain loop does", "[comm]") {
  for (const int ranks : kGroupSizes) {
    run_group(ranks, [](Communicator& group) {
      sweep_reduce_scatter(group, Placing::kShared);
      sweep_reduce_scatter(group, Placing::kPrivate);
    });
  }
}

TEST_CASE("thread ranks gather any size", "[comm]") {
  for (const int ranks : kGroupSizes) {
    run_group(ranks, [](Communicator& group) { sweep_all_gather(group, Placing::kPrivate); });
  }
}

TEST_CASE("thread ranks broadcast any size from any root", "[comm]") {
  for (const int ranks : kGroupSizes) {
    run_group(ranks, [](Communicator& group) { sweep_broadcast(group, Placing::kPrivate); });
  }
}

TEST_CASE("thread ranks exchange bytes", "[comm]") {
  for (const int ranks : kGroupSizes)
    run_group(ranks, sweep_exchange);
}

TEST_CASE("the traffic of a collective is what the formula says", "[comm]") {
  run_group(3, [](Communicator& group) {
    std::vector<float> whole(30);
    std::vector<float> sum(10);
    const ReducePart reduce = {
        .whole = {reinterpret_cast<std::byte*>(whole.data()), 30, DType::kFloat32},
        .slice_count = 10,
        .sum = {reinterpret_cast<std::byte*>(sum.data()), 10, DType::kFloat32}};
    group.reduce_scatter({&reduce, 1}, {}, group.stream()).wait();
    expect(group.traffic().reduced == 120, "a reduce-scatter reads its slice of every rank");

    const View all = {reinterpret_cast<std::byte*>(whole.data()), 30, DType::kFloat32};
    const GatherPart in_place = {all.slice(std::int64_t{10} * group.rank(), 10), all};
    group.all_gather({&in_place, 1}, {}, group.stream()).wait();
    expect(group.traffic().gathered == 80, "an all-gather in place writes what the others own");
    const GatherPart apart = {reduce.sum, all};
    group.all_gather({&apart, 1}, {}, group.stream()).wait();
    expect(group.traffic().gathered == 200,
           "an all-gather from elsewhere writes the own part, too");
    expect(group.traffic().staged == 0, "threads copy nothing twice");
    expect(group.traffic().collectives == 3, "three collectives");
    group.barrier({});
  });
}

TEST_CASE("a list longer than a round is one collective", "[comm]") {
  run_group(2, [](Communicator& group) {
    std::vector<float> values(2000);
    std::vector<GatherPart> parts;
    for (std::int64_t i = 0; i < 1000; ++i) {
      const View whole = {reinterpret_cast<std::byte*>(values.data() + 2 * i), 2, DType::kFloat32};
      values[static_cast<std::size_t>(2 * i + group.rank())] = static_cast<float>(i + group.rank());
      parts.push_back({whole.slice(group.rank(), 1), whole});
    }
    group.all_gather(parts, {"many"}, group.stream()).wait();
    for (std::size_t i = 0; i < values.size(); ++i) {
      expect(values[i] == static_cast<float>((i + 1) >> 1U), "value " + std::to_string(i));
    }
    expect(group.traffic().collectives == 1, "one collective");
    group.barrier({});
  });
}

TEST_CASE("a large gather at odd addresses copies every byte", "[comm]") {
  constexpr std::int64_t kCount = (9 << 20) + 5;  // 16-bit elements: beyond what caches hold
  std::vector<std::uint16_t> part(static_cast<std::size_t>(kCount) + 1);
  std::vector<std::uint16_t> results(4 * static_cast<std::size_t>(kCount) + 2, 7);
  for (std::size_t i = 0; i < part.size(); ++i)
    part[i] = static_cast<std::uint16_t>(i * 2654435761U >> 8);
  run_group(2, [&](Communicator& group) {
    auto* whole = results.data() + 1 + 2 * kCount * group.rank();
    const GatherPart gather = {
        {reinterpret_cast<std::byte*>(part.data() + 1), kCount, DType::kBFloat16},
        {reinterpret_cast<std::byte*>(whole), 2 * kCount, DType::kBFloat16}};
    group.all_gather({&gather, 1}, {"large"}, group.stream()).wait();
    for (const std::int64_t first : {std::int64_t{0}, kCount}) {
      expect(std::equal(part.begin() + 1, part.end(), whole + first), "every byte");
    }
  });
  CHECK(results.front() == 7);
  CHECK(results.back() == 7);
}

TEST_CASE("a large reduce-scatter into odd addresses sums every element", "[comm]") {
  constexpr std::int64_t kCount = (1 << 20) + 5;  // fp32 sums: beyond what is kept in caches
  run_group(2, [&](Communicator& group) {
    std::vector<float> gradients(2 * kCount);
    for (std::size_t i = 0; i < gradients.size(); ++i)
      gradients[i] = std::sin(static_cast<float>(i)) + static_cast<float>(group.rank());
    std::vector<float> sums(kCount + 2, 7);
    const ReducePart part = {
        .whole = {reinterpret_cast<std::byte*>(gradients.data()), 2 * kCount, DType::kFloat32},
        .slice_count = kCount,
        .sum = {reinterpret_cast<std::byte*>(sums.data() + 1), kCount, DType::kFloat32}};
    group.reduce_scatter({&part, 1}, {"large"}, group.stream()).wait();
    for (std::int64_t i = 0; i < kCount; ++i) {
      const float value = std::sin(static_cast<float>(group.rank() * kCount + i));
      expect(sums[static_cast<std::size_t>(i) + 1] == value + (value + 1), "every element");
    }
    expect(sums.front() == 7 && sums.back() == 7, "nothing around them");
  });
}

TEST_CASE("collectives on two streams keep the order of the calls", "[comm]") {
  run_group(2, [](Communicator& group) {
    std::array<float, 2> values = {};
    const View whole = {reinterpret_cast<std::byte*>(values.data()), 2, DType::kFloat32};
    const GatherPart part = {whole.slice(group.rank(), 1), whole};
    Stream second = Stream::worker("second");
    Stream caller = Stream::caller();
    for (int i = 0; i < 50; ++i) {
      group.all_gather({&part, 1}, {"first"}, group.stream());
      group.all_gather({&part, 1}, {"second"}, second);
      group.all_gather({&part, 1}, {"third"}, caller);
    }
    group.barrier({"end"});
  });
}

TEST_CASE("negative zeros survive a sum unless a rank contributes zeros", "[comm]") {
  run_group(2, [](Communicator& group) {
    std::array<float, 2> whole = {-0.0F, -0.0F};
    float sum = 1;
    const ReducePart part = {
        .whole = {reinterpret_cast<std::byte*>(whole.data()), 2, DType::kFloat32},
        .slice_count = 1,
        .sum = {reinterpret_cast<std::byte*>(&sum), 1, DType::kFloat32}};
    group.reduce_scatter({&part, 1}, {}, group.stream()).wait();
    expect(std::signbit(sum), "-0 + -0 is -0");
    ReducePart nothing = part;
    nothing.whole = {};
    group.reduce_scatter({group.rank() == 0 ? &nothing : &part, 1}, {}, group.stream()).wait();
    expect(!std::signbit(sum), "0 + -0 is 0");
    group.barrier({});
  });
}
