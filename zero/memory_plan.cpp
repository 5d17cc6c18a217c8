#include "zero/memory_plan.hpp"

#include <algorithm>

namespace sifr {

namespace {

struct UnitBytes {
  std::int64_t largest_weights = 0;  // of one unit
  std::int64_t widest_weight = 0;    // of one element
  std::int64_t held_weights = 0;     // of units that are leased more than once in backward
  std::int64_t largest_sum = 0;      // elements
  std::int64_t ring = 0;  // two largest neighbouring gradients, of units with one gradient lease
  std::int64_t dedicated = 0;  // gradients of the others
};

UnitBytes measure(const Layout& layout) {
  UnitBytes bytes;
  std::int64_t before = 0;
  for (const UnitLayout& unit : layout.units()) {
    bytes.largest_weights = std::max(bytes.largest_weights, unit.weight_bytes);
    bytes.largest_sum = std::max(bytes.largest_sum, unit.sum_count);
    for (const SegmentLayout& segment : unit.segments)
      bytes.widest_weight = std::max(bytes.widest_weight, size_of(segment.weights));
    if (unit.gradient_leases > 1) {
      bytes.held_weights += unit.weight_bytes;
      bytes.dedicated += unit.gradient_bytes;
      continue;
    }
    if (unit.gradient_bytes == 0) continue;
    bytes.ring = std::max(bytes.ring, before + unit.gradient_bytes);
    before = unit.gradient_bytes;
  }
  return bytes;
}

std::int64_t window_bytes(const Layout& layout,
                          const ZeroOptions& options,
                          const UnitBytes& bytes) {
  if (options.poison) return layout.weight_bytes();
  if (options.stage < 3) return 0;
  const std::vector<bool> is_persistent = persistent_units(layout, options);
  std::int64_t elements = 0;
  std::int64_t persistent = 0;
  for (int u = 0; u < layout.unit_count(); ++u) {
    elements += layout.unit(u).elements;
    if (is_persistent[static_cast<std::size_t>(u)]) persistent += layout.unit(u).weight_bytes;
  }
  if (options.max_live >= elements) return layout.weight_bytes();
  // Two units can be held at once, wherever one of them lies: one side of it is large enough.
  const std::int64_t least = persistent + bytes.held_weights + 3 * bytes.largest_weights;
  const std::int64_t live = options.max_live * bytes.widest_weight;
  return std::min(layout.weight_bytes(), std::max(least, round_up(live, 512)));
}

std::int64_t master_count(const Layout& layout, int stage) {
  std::int64_t count = 0;
  for (const UnitLayout& unit : layout.units()) {
    for (const SegmentLayout& segment : unit.segments) {
      if (!segment.trainable || segment.weights == DType::kFloat32) continue;
      count += stage == 0 ? segment.count : segment.slice_count;
    }
  }
  return count;
}

}  // namespace

std::vector<bool> persistent_units(const Layout& layout, const ZeroOptions& options) {
  std::vector<bool> persistent;
  std::int64_t total = 0;
  for (const UnitLayout& unit : layout.units()) {
    const bool stays = !options.poison && unit.elements <= options.persistence &&
                       total + unit.elements <= options.model_persistence;
    if (stays) total += unit.elements;
    persistent.push_back(stays);
  }
  return persistent;
}

MemoryPlan make_memory_plan(const Layout& layout, const ZeroOptions& options) {
  const UnitBytes bytes = measure(layout);
  const std::int64_t state = options.stage == 0 ? layout.trainable_count() : layout.arena_count();
  MemoryPlan plan;
  plan.weights = options.stage < 3 ? layout.weight_bytes() : layout.shard_bytes();
  plan.window = window_bytes(layout, options, bytes);
  plan.dedicated = options.stage < 2 ? 0 : bytes.dedicated;
  plan.gradients = options.stage < 2 ? layout.gradient_bytes() : bytes.ring + bytes.dedicated;
  plan.accumulators = options.reduce_at_boundary ? 4 * layout.trainable_count() : 0;
  plan.sums = 4 * layout.arena_count();
  plan.masters = 4 * master_count(layout, options.stage);
  plan.moments = 8 * state;
  plan.bucket = options.stage == 0 ? 8 * bytes.largest_sum : 0;
  return plan;
}

std::int64_t MemoryPlan::of(Purpose purpose) const noexcept {
  switch (purpose) {
    case Purpose::kWeights:
      return weights;
    case Purpose::kGradients:
      return gradients + accumulators + sums;
    case Purpose::kOptimizer:
      return masters + moments;
    case Purpose::kWindow:
      return window;
    case Purpose::kBucket:
      return bucket;
    case Purpose::kActivation:
    case Purpose::kStaging:
      break;
  }
  return 0;
}

std::int64_t MemoryPlan::total() const noexcept {
  return weights + window + gradients + accumulators + sums + masters + moments + bucket;
}

}  // namespace sifr
