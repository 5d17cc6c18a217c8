#include "zero/sharded_optimizer.hpp"

#include <algorithm>

// ShardedOptimizer: the norm of the sums, a batch of views at a time.
namespace sifr {

namespace {
constexpr std::size_t index(int value) {
  return static_cast<std::size_t>(value);
}
}  // namespace

// Padding is no parameter's, and stays out.
ShardedOptimizer::Norm ShardedOptimizer::squared_norm() {
  Norm norm;
  for (const int u : trainable_units_) {
    for (int s = 0; s < static_cast<int>(layout_.unit(u).segments.size()); ++s) {
      if (layout_.unit(u).segments[index(s)].trainable) add_squares(u, s, norm);
    }
  }
  add_squares_of_views(norm);
  return norm;
}

// Of this rank's slice of the segment.
void ShardedOptimizer::add_squares(int unit, int segment, Norm& norm) {
  const View sums = reducer_.sums(unit, segment);
  const std::int64_t first = communicator_.rank() * sums.count;
  layout_.for_each_stretch(unit, segment, first, first + sums.count, [&](const Stretch& stretch) {
    for (std::int64_t at = 0; at < stretch.count; at += kernels::kGrain) {
      if (sum_views_.size() == kBatch) add_squares_of_views(norm);
      sum_views_.push_back(sums.slice(stretch.segment_first - first + at,
                                      std::min(kernels::kGrain, stretch.count - at)));
      sum_parameters_.push_back(layout_.unit(unit).parameters[index(stretch.parameter)].index);
    }
  });
}

void ShardedOptimizer::add_squares_of_views(Norm& norm) {
  Stream& compute = communicator_.device().compute();
  kernels::SquareSum result;
  kernels::square_sum(sum_views_, result, compute);
  compute.record().wait();
  norm.squares.add(result.sum);
  if (result.first_non_finite >= 0 && norm.non_finite < 0)
    norm.non_finite = sum_parameters_[static_cast<std::size_t>(result.first_non_finite)];
  sum_views_.clear();
  sum_parameters_.clear();
}

}  // namespace sifr
