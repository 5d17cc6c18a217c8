#pragma once

#include "../device/memory.hpp"
#include "./layout.hpp"
#include "./options.hpp"

#include <cstdint>
#include <vector>

namespace sifr {

/// The bytes that one rank holds for a layout under given options, from which every arena is
/// allocated at start: the account equals it to the byte. Formulas: Rajbhandari et al., "ZeRO:
/// memory optimizations toward training trillion parameter models", 2020, section 5, with fp32 sums
/// of the own shard beside the gradients.
struct MemoryPlan {
  std::int64_t weights = 0;    // stages 0–2: all wholes; 3: the rank's shards
  std::int64_t window = 0;     // stage 3: gathered units; in debug mode all units, at every stage
  std::int64_t gradients = 0;  // stages 0 and 1: every unit's buffer; 2 and 3: the ring
  std::int64_t dedicated =
      0;  // of `gradients` at stages 2 and 3: buffers of units with several gradient leases
  std::int64_t accumulators = 0;  // reduce_at "boundary": local fp32 sums of the whole
  std::int64_t sums = 0;          // fp32 sums of the rank's arena
  std::int64_t masters = 0;       // fp32, of 16-bit segments: in fp32 the weight is the master
  std::int64_t moments = 0;       // m and v
  std::int64_t bucket = 0;        // stage 0: two units' gathered sums

  [[nodiscard]] std::int64_t total() const noexcept;
  [[nodiscard]] std::int64_t of(Purpose purpose) const noexcept;
};

/// Stage 3: the units that stay gathered between leases, [unit]: those of at most `persistence`
/// elements, in declaration order up to `model_persistence` elements in all. None in debug mode.
[[nodiscard]] std::vector<bool> persistent_units(const Layout& layout, const ZeroOptions& options);

[[nodiscard]] MemoryPlan make_memory_plan(const Layout& layout, const ZeroOptions& options);

}  // namespace sifr
