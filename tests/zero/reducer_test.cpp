#include "zero/reducer.hpp"

#include "tests/comm/run_group.hpp"
#include "tests/zero/recording_communicator.hpp"
#include "tests/zero/zero_rank.hpp"

#include <catch2/catch.hpp>

namespace sifr::test {
namespace {

// What one micro-batch of all units, last first, asks of the group.
std::vector<std::string> calls_of(const std::vector<UnitSpec>& units, const ZeroOptions& options) {
  RecordingCommunicator communicator(0, 2);
  ZeroRank rank(units, options, communicator);
  for (int u = rank.layout.unit_count() - 1; u >= 0; --u)
    rank.close(u, [](std::int64_t) { return 1.0F; });
  rank.finish();
  return communicator.calls();
}

TEST_CASE("neighbouring units share a bucket as long as they fit", "[zero]") {
  const std::vector<UnitSpec> units = {unit("a", 512), unit("b", 512), unit("c", 512)};
  using Calls = std::vector<std::string>;
  const auto calls = [&](std::int64_t bucket) {
    return calls_of(units, {.stage = 1, .reduce_bucket = bucket});
  };
  CHECK(calls(1535) == Calls{"reduce c, b 1024", "reduce a 512"});
  CHECK(calls(1536) == Calls{"reduce c, b, a 1536"});
  CHECK(calls(1023) == Calls{"reduce c 512", "reduce b 512", "reduce a 512"});
  CHECK(calls(0) == Calls{"reduce c 512", "reduce b 512", "reduce a 512"});  // none is shared
}

TEST_CASE("a unit of bucket size travels whole, a larger one is cut across its slices",
          "[zero][PAR01][PAR02]") {
  using Calls = std::vector<std::string>;
  const auto calls = [](std::int64_t count, std::int64_t bucket) {
    return calls_of({unit("a", count)}, {.stage = 1, .reduce_bucket = bucket});
  };
  CHECK(calls(4095, 4096) == Calls{"reduce a 4096"});
  CHECK(calls(4096, 4096) == Calls{"reduce a 4096"});
  CHECK(calls(4097, 4096) == Calls{"reduce a 4096", "reduce a 512"});
  CHECK(calls(4096, 1024) == Calls(4, "reduce a 1024"));
  CHECK(calls(4096, 1) == Calls(8, "reduce a 512"));  // a quantum of each slice at least
}

TEST_CASE("half the ring is on its way while the other half fills", "[zero]") {
  const std::vector<UnitSpec> units = {unit("a", 512), unit("b", 512), unit("c", 512)};
  using Calls = std::vector<std::string>;
  CHECK(calls_of(units, {.stage = GENERATE(2, 3)}) ==
        Calls{"reduce c 512", "reduce b 512", "reduce a 512"});
}

// Every rank's sums of all units, checked on the spot: element i of `unit` is expected(unit, i).
void check_sums(const ZeroRank& rank,
                const std::function<float(int unit, std::int64_t element)>& expected) {
  for (int u = 0; u < rank.layout.unit_count(); ++u) {
    const std::vector<float> sums = rank.sums(u);
    const std::int64_t count = rank.layout.unit(u).parameters[0].spec.count;
    const auto first = static_cast<std::int64_t>(sums.size()) * rank.communicator.rank();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const std::int64_t element = first + static_cast<std::int64_t>(i);
      const float wanted = element < count ? expected(u, element) : 0;
      expect(sums[i] == wanted,
             "unit " + std::to_string(u) + " element " + std::to_string(element) + ": " +
                 std::to_string(sums[i]) + " instead of " + std::to_string(wanted));
    }
  }
}

TEST_CASE("sums are exact for sizes around the bucket", "[zero][PAR01][PAR02][GRD10][PAR12]") {
  const int ranks = GENERATE(1, 2, 3);
  const ZeroOptions options{.stage = GENERATE(0, 1, 2, 3),
                            .overlap = GENERATE(false, true),
                            .reduce_bucket = GENERATE(1, 1536, 1537, 4000)};
  const std::vector<UnitSpec> units = {unit("a", 1535),
                                       unit("b", 1536),
                                       unit("c", 1537),
                                       unit("d", 5000, DType::kBFloat16),
                                       unit("e", 1)};
  run_group(ranks, [&](Communicator& communicator) {
    ZeroRank rank(units, options, communicator);
    for (int step = 0; step < 2; ++step) {
      for (int micro = 0; micro < 3; ++micro) {
        for (int u = 4; u >= 0; --u) {
          const bool has_none = u == 2 && communicator.rank() == 1;
          const auto gradient = [&](std::int64_t i) {
            return static_cast<float>(i % 50 + communicator.rank() + micro);
          };
          rank.close(u, has_none ? std::function<float(std::int64_t)>() : gradient);
        }
        rank.finish();
      }
      check_sums(rank, [&](int u, std::int64_t i) {
        float sum = 0;
        for (int r = 0; r < ranks; ++r) {
          if (u != 2 || r != 1) sum += static_cast<float>(3 * (i % 50 + r) + 3);
        }
        return sum;
      });
      rank.reducer.begin_step();
    }
  });
}

TEST_CASE("ranks are added in their order, and micro-batches to their sum", "[zero][GRD18]") {
  // 2^24 + 1 + 1 is 2^24 from the left, and 2^24 + 2 the other way round.
  const ZeroOptions options{.stage = GENERATE(0, 1, 2, 3), .overlap = GENERATE(false, true)};
  run_group(3, [&](Communicator& communicator) {
    ZeroRank rank({unit("a", 700)}, options, communicator);
    for (int micro = 0; micro < 2; ++micro) {
      rank.close(0, [&](std::int64_t) { return communicator.rank() == 0 ? 0x1p24F : 1.0F; });
      rank.finish();
    }
    check_sums(rank, [](int, std::int64_t) { return 0x1p25F; });
  });
}

TEST_CASE("local accumulation adds a rank's micro-batches first", "[zero]") {
  // The sums of ranks 1 and 2, 3 each, each round up.
  const ZeroOptions options{
      .stage = GENERATE(0, 1), .reduce_at_boundary = true, .reduce_bucket = GENERATE(512, 100'000)};
  run_group(3, [&](Communicator& communicator) {
    ZeroRank rank({unit("a", 700), unit("b", 30)}, options, communicator);
    for (int micro = 0; micro < 3; ++micro) {
      rank.close(0, [&](std::int64_t) { return communicator.rank() == 0 ? 0x1p24F : 1.0F; });
      rank.finish();
    }
    rank.reducer.reduce_accumulators();
    rank.reducer.wait();
    check_sums(rank, [](int u, std::int64_t) { return u == 0 ? 0x1.8p25F + 8 : 0; });
  });
}

TEST_CASE("a wire of 16 bits rounds each contribution once", "[zero][PRE13]") {
  const bool is_narrow = GENERATE(false, true);
  ZeroOptions options{.stage = GENERATE(0, 1, 2, 3)};
  if (is_narrow) options.wire = DType::kBFloat16;
  run_group(2, [&](Communicator& communicator) {
    ZeroRank rank({unit("a", 700)}, options, communicator);
    rank.close(0, [&](std::int64_t) { return 1 + 0x1p-12F; });
    rank.finish();
    check_sums(rank, [&](int, std::int64_t) { return is_narrow ? 2.0F : 2 + 0x1p-11F; });
  });
}

TEST_CASE("a micro-batch reads each gradient once, and moves nothing twice", "[zero][PRF03]") {
  const int ranks = GENERATE(1, 2, 4);
  ZeroOptions options{.stage = GENERATE(0, 1, 2, 3), .reduce_bucket = GENERATE(600, 1'000'000)};
  const bool is_narrow = GENERATE(false, true);
  if (is_narrow) options.wire = DType::kBFloat16;
  run_group(ranks, [&](Communicator& communicator) {
    ZeroRank rank({unit("a", 1024 * 3), unit("b", 5000, DType::kBFloat16), unit("c", 7)},
                  options,
                  communicator);
    const Communicator::Traffic before = communicator.traffic();
    for (int u = 2; u >= 0; --u)
      rank.close(u, [](std::int64_t) { return 1.0F; });
    rank.finish();
    // A rank reads its slice of every rank's gradients: (W − 1)/W of them from its peers.
    std::int64_t bytes = 0;
    for (const UnitLayout& one : rank.layout.units())
      bytes += is_narrow ? 2 * one.sum_count : one.gradient_bytes;
    const Communicator::Traffic after = communicator.traffic();
    expect(after.reduced - before.reduced == bytes, "reduced");
    expect(after.gathered == before.gathered, "gathered");
    expect(after.staged == 0, "staged");
  });
}

TEST_CASE("a unit that closes twice keeps its second gradient until that is reduced", "[zero]") {
  // Left out first, then closed after all: the bucket holds one of the two.
  const ZeroOptions options{
      .stage = GENERATE(0, 1, 2, 3), .overlap = GENERATE(false, true), .reduce_bucket = 1000};
  run_group(2, [&](Communicator& communicator) {
    ZeroRank rank({unit("a", 700), unit("b", 2500), unit("c", 700)}, options, communicator);
    rank.close(0, {});
    rank.close(0, [](std::int64_t) { return 1.0F; });
    rank.close(1, [](std::int64_t) { return 2.0F; });
    rank.close(2, [](std::int64_t) { return 3.0F; });
    rank.finish();
    check_sums(rank, [](int u, std::int64_t) { return 2.0F * static_cast<float>(u + 1); });
  });
}

TEST_CASE("sums that a step adds nothing to are zero, not those of the step before",
          "[zero][GRD10]") {
  const ZeroOptions options{.stage = GENERATE(0, 1, 2, 3)};
  run_group(2, [&](Communicator& communicator) {
    ZeroRank rank(
        {unit("a", 700), frozen(unit("ice", 300)), unit("b", 700)}, options, communicator);
    rank.close(2, [](std::int64_t) { return 3.0F; });
    rank.close(0, [](std::int64_t) { return 3.0F; });
    rank.finish();
    rank.reducer.begin_step();
    rank.close(0, [](std::int64_t) { return 1.0F; });
    rank.finish();
    rank.reducer.clear_missing_sums();
    for (const int u : {0, 2}) {
      for (const float sum : rank.sums(u))
        expect(sum == 0 || (u == 0 && sum == 2), "unit " + std::to_string(u));
    }
  });
}

TEST_CASE("what was dropped is never reduced", "[zero]") {
  RecordingCommunicator communicator(0, 2);
  ZeroRank rank({unit("a", 512), unit("b", 512)}, {.stage = 1}, communicator);
  rank.close(1, [](std::int64_t) { return 1.0F; });
  rank.reducer.drop_pending();
  rank.memory.clear();
  rank.close(0, [](std::int64_t) { return 1.0F; });
  rank.finish();
  CHECK(communicator.calls() == std::vector<std::string>{"reduce a 512"});
}

}  // namespace
}  // namespace sifr::test
