#include "device/detail/check.hpp"
#include "device/kernels.hpp"
#include "engine/detail/engine_state.hpp"

#include <algorithm>
#include <cstring>

// EngineState: initial weights.
namespace sifr::detail {

namespace {
constexpr std::int64_t kFillPiece = 1 << 16;  // elements that a fill is asked for at a time
}  // namespace

void EngineState::fill_weights() {
  for (int u = 0; u < layout_.unit_count(); ++u) {
    for (int s = 0; s < static_cast<int>(layout_.unit(u).segments.size()); ++s)
      fill_segment(u, s);
  }
}

// Trainable: into the masters that this rank updates. Frozen: into its slice of the weights.
void EngineState::fill_segment(int unit, int segment) {
  const SegmentLayout& place = layout_.unit(unit).segments[index(segment)];
  ShardedOptimizer::Range range = optimizer_.owned(unit, segment);
  if (!place.trainable) range = {context_.rank() * place.slice_count, place.slice_count};
  const View target =
      place.trainable ? optimizer_.masters(unit, segment) : store_.slice(unit, segment);
  std::vector<float> piece(kFillPiece);
  for (const Stretch& stretch :
       layout_.stretches(unit, segment, range.first, range.first + range.count)) {
    const Fill& fill = declared_[index(unit)].parameters[index(stretch.parameter)].fill;
    if (!fill) continue;
    for (std::int64_t first = 0; first < stretch.count; first += kFillPiece) {
      const std::int64_t count = std::min(kFillPiece, stretch.count - first);
      const std::span values_here = std::span(piece).first(static_cast<std::size_t>(count));
      fill(stretch.parameter_first + first, values_here);
      if (options_.poison) require_repeatable(unit, stretch, first, values_here);
      const ConstView values{
          reinterpret_cast<const std::byte*>(piece.data()), count, DType::kFloat32};
      kernels::cast(values,
                    target.slice(stretch.segment_first - range.first + first, count),
                    device_.compute());
    }
  }
  if (!place.trainable || place.weights == DType::kFloat32) return;
  kernels::cast(
      optimizer_.master_slice(unit, segment), store_.slice(unit, segment), device_.compute());
}

// A fill that follows from a generator's state gives every rank and stage other weights.
void EngineState::require_repeatable(int unit,
                                     const Stretch& stretch,
                                     std::int64_t first,
                                     std::span<const float> values) const {
  const Parameter& parameter = declared_[index(unit)].parameters[index(stretch.parameter)];
  std::vector<float> again(values.size());
  parameter.fill(stretch.parameter_first + first, again);
  SIFR_REQUIRE(
      UsageError,
      std::memcmp(again.data(), values.data(), values.size_bytes()) == 0,
      "fill of '{}' gives other values when it is asked for elements {} to {} again: values "
      "must follow from their index, not from a generator's running state",
      parameter.name,
      stretch.parameter_first + first,
      stretch.parameter_first + first + static_cast<std::int64_t>(values.size()) - 1);
}

}  // namespace sifr::detail
