#pragma once

#include "../device/dtype.hpp"

#include <cstdint>
#include <limits>
#include <optional>

namespace sifr {

/// What the configuration decides about one engine's sharding, as plain numbers. Counts are
/// elements.
struct ZeroOptions {
  int stage = 0;         // 0: all replicated … 3: weights sharded too
  bool overlap = false;  // collectives run on the communication worker instead of the caller
  bool reduce_at_boundary = false;  // accumulate locally, reduce once a step (stages 0 and 1)
  bool poison = false;              // debug: memory outside leases holds NaNs
  std::optional<DType> wire = {};   // gradients are narrowed to it before they travel
  std::int64_t reduce_bucket = 500'000'000;  // reduced together; 0: each unit alone
  std::int64_t gather_bucket =
      500'000'000;  // updated weights that are gathered together (stages 1 and 2)
  std::int64_t prefetch = 50'000'000;  // stage 3: weights gathered ahead of their lease
  std::int64_t persistence = 100'000;  // stage 3: units this small stay gathered …
  std::int64_t model_persistence =
      std::numeric_limits<std::int64_t>::max();  // … up to this many in all
  std::int64_t max_live = 1'000'000'000;         // stage 3: gathered weights at one time
  std::int64_t max_reuse_distance =
      1'000'000'000;  // stage 3: a unit whose next use is farther is released at once
  std::int64_t chunk =
      1'000'000'000;  // updated at a time: rounded up to quanta, at most a grain; 0: that
};

}  // namespace sifr
