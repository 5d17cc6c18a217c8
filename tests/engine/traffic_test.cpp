// Bytes that one rank reads and writes in collectives, by stage, against the formulas of the docs.
#include "tests/engine/small_engine.hpp"

#include <catch2/catch.hpp>

namespace sifr::test {
namespace {

constexpr std::int64_t kPadded = 6 * 256;  // elements of each unit: no padding on 1, 2 and 3 ranks
constexpr std::int64_t kUnits = 4;
constexpr std::int64_t kAccumulation = 3;

struct Moved {
  std::int64_t reduced = 0;
  std::int64_t gathered = 0;
};

// In one step, the third, of units of which the first is tied.
Moved moved(int ranks, SmallConfig config) {
  config.accumulation = kAccumulation;
  const SmallModel model({{"tied", kPadded, 2}, {"b", kPadded}, {"c", kPadded}, {"d", kPadded}});
  Moved result;
  const auto body = [&](Engine& engine, SmallModel& own) {
    Communicator::Traffic before;
    for (int step = 0; step < 3; ++step) {
      before = engine.context().communicator().traffic();
      for (int micro = 0; micro < kAccumulation; ++micro) {
        own.run(engine, 1);
        engine.step();
      }
    }
    const Communicator::Traffic after = engine.context().communicator().traffic();
    SIFR_CHECK_RANK(after.staged == 0);
    if (engine.rank() == 0)
      result = {after.reduced - before.reduced, after.gathered - before.gathered};
  };
  for (const std::string& error : errors_of_ranks(ranks, config, body, model))
    CHECK(error == "");
  return result;
}

TEST_CASE("a step reads each gradient once a micro-batch at every stage, tied ones too",
          "[engine][PRF03][PRE17]") {
  const int ranks = GENERATE(1, 2, 3);
  const bool is_bf16 = GENERATE(false, true);
  const int stage = GENERATE(0, 1, 2, 3);
  const std::int64_t bytes = is_bf16 ? 2 : 4;
  CHECK(moved(ranks, {.stage = stage, .is_bf16 = is_bf16}).reduced ==
        kAccumulation * bytes * kUnits * kPadded);
}

TEST_CASE("reducing at the boundary reads fp32 sums once a step", "[engine][PRF03]") {
  const int ranks = GENERATE(1, 2, 3);
  CHECK(moved(ranks,
              {.stage = GENERATE(0, 1),
               .is_bf16 = GENERATE(false, true),
               .sifr = R"("reduce_at": "boundary",)"})
            .reduced == 4 * kUnits * kPadded);
}

TEST_CASE("a step gathers what its stage shards, and no more", "[engine][PRF03]") {
  const std::int64_t ranks = GENERATE(1, 2, 3);
  const bool is_bf16 = GENERATE(false, true);
  const std::int64_t bytes = is_bf16 ? 2 : 4;
  const std::int64_t elements = kUnits * kPadded;
  const auto gathered = [&](int stage, const std::string& zero) {
    return moved(static_cast<int>(ranks), {.stage = stage, .is_bf16 = is_bf16, .zero = zero})
        .gathered;
  };
  CHECK(gathered(0, "") == 4 * elements);  // sums, into memory of their own
  for (const int stage : {1, 2})
    CHECK(gathered(stage, "") == bytes * elements * (ranks - 1) / ranks);  // in place
  // Stage 3: with room for all, each unit once after the update; without, each at its lease, but
  // for those that turn a pass around: the last of forward and the first of backward.
  CHECK(gathered(3, R"("stage3_param_persistence_threshold": 0,)") == bytes * elements);
  const std::int64_t each = bytes * kPadded;
  CHECK(gathered(3,
                 R"("stage3_param_persistence_threshold": 0, "stage3_prefetch_bucket_size": 0,
                 "stage3_max_live_parameters": 0,)") ==
        (kAccumulation * (2 * kUnits - 2) + 1) * each);
}

}  // namespace
}  // namespace sifr::test
