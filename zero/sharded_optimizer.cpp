#include "zero/sharded_optimizer.hpp"

#include <algorithm>
#include <cmath>

namespace sifr {

namespace {
constexpr std::int64_t kFloatBytes = size_of(DType::kFloat32);
constexpr std::size_t index(int value) {
  return static_cast<std::size_t>(value);
}
}  // namespace

ShardedOptimizer::ShardedOptimizer(const Layout& layout,
                                   const ZeroOptions& options,
                                   const MemoryPlan& plan,
                                   const AdamOptions& adam,
                                   const WeightStore& store,
                                   const Reducer& reducer,
                                   Communicator& communicator,
                                   Stream& stream)
    : layout_(layout),
      options_(options),
      adam_(adam),
      store_(store),
      reducer_(reducer),
      communicator_(communicator),
      stream_(stream),
      masters_(communicator.device().allocate(plan.masters, Purpose::kOptimizer)),
      m_(communicator.device().allocate(plan.moments / 2, Purpose::kOptimizer)),
      v_(communicator.device().allocate(plan.moments / 2, Purpose::kOptimizer)),
      gathered_(communicator.device().allocate(plan.bucket, Purpose::kBucket)) {
  place_states();
  make_pieces();
  scalars_.resize(groups_.size());
}

void ShardedOptimizer::place_states() {
  std::int64_t first = 0;
  std::int64_t master_first = 0;
  std::size_t most_segments = 0;
  for (int u = 0; u < layout_.unit_count(); ++u) {
    std::vector<State> states;
    for (int s = 0; s < static_cast<int>(layout_.unit(u).segments.size()); ++s) {
      const SegmentLayout& segment = layout_.unit(u).segments[index(s)];
      states.emplace_back();
      if (!segment.trainable) continue;
      states.back().first = first;
      first += owned(u, s).count;
      if (segment.weights == DType::kFloat32) continue;
      states.back().master_first = master_first;
      master_first += owned(u, s).count;
    }
    most_segments = std::max(most_segments, states.size());
    states_.push_back(std::move(states));
    turns_.push_back(static_cast<int>(trainable_units_.size() % 2));
    if (layout_.unit(u).sum_count > 0) trainable_units_.push_back(u);
  }
  for (auto& parts : parts_)
    parts.reserve(most_segments);
}

const ShardedOptimizer::State& ShardedOptimizer::state(int unit, int segment) const {
  return states_[index(unit)][index(segment)];
}

ShardedOptimizer::Range ShardedOptimizer::owned(int unit, int segment) const {
  const SegmentLayout& place = layout_.unit(unit).segments[index(segment)];
  if (options_.stage == 0) return {0, place.count};
  return {communicator_.rank() * place.slice_count, place.slice_count};
}

View ShardedOptimizer::masters(int unit, int segment) const {
  const SegmentLayout& place = layout_.unit(unit).segments[index(segment)];
  if (place.weights == DType::kFloat32) {
    return options_.stage == 0 ? store_.whole_segment(unit, segment) : store_.slice(unit, segment);
  }
  return {masters_.data() + state(unit, segment).master_first * kFloatBytes,
          owned(unit, segment).count,
          DType::kFloat32};
}

View ShardedOptimizer::master_slice(int unit, int segment) const {
  const SegmentLayout& place = layout_.unit(unit).segments[index(segment)];
  const std::int64_t first = communicator_.rank() * place.slice_count - owned(unit, segment).first;
  return masters(unit, segment).slice(first, place.slice_count);
}

View ShardedOptimizer::gathered_sum(int unit, int segment) const {
  const SegmentLayout& place = layout_.unit(unit).segments[index(segment)];
  const std::int64_t half = gathered_.bytes() / kFloatBytes / 2;
  const std::int64_t first = turns_[index(unit)] * half + place.sum_first;
  return {gathered_.data() + first * kFloatBytes, place.count, DType::kFloat32};
}

// The sums of the owned range.
View ShardedOptimizer::sum_of(int unit, int segment) const {
  return options_.stage == 0 ? gathered_sum(unit, segment) : reducer_.sums(unit, segment);
}

void ShardedOptimizer::make_pieces() {
  for (int u = 0; u < layout_.unit_count(); ++u) {
    for (int s = 0; s < static_cast<int>(layout_.unit(u).segments.size()); ++s) {
      if (!layout_.unit(u).segments[index(s)].trainable) continue;
      make_pieces(u, s);
      make_sum_runs(u, s);
    }
    if (layout_.unit(u).sum_count > 0) piece_ends_.push_back(pieces_.size());
  }
}

// The segment's runs, cut where a chunk of the moments ends.
void ShardedOptimizer::make_pieces(int unit, int segment) {
  const bool is_bounded = options_.chunk > 0 && options_.chunk < kernels::kGrain;
  const std::int64_t chunk = is_bounded ? round_up(options_.chunk, kQuantum) : kernels::kGrain;
  const Range range = owned(unit, segment);
  const std::int64_t shift = state(unit, segment).first - range.first;
  for (Run run : layout_.runs(unit, segment, range.first, range.first + range.count)) {
    while (run.count > 0) {
      Run head = run;
      head.count = std::min(run.count, chunk - (shift + run.segment_first) % chunk);
      add_piece(head, range);
      run.parameter_first += head.count;
      run.segment_first += head.count;
      run.count -= head.count;
    }
  }
}

void ShardedOptimizer::add_piece(const Run& run, Range range) {
  const std::int64_t first = run.segment_first - range.first;
  const std::int64_t state_bytes = (state(run.unit, run.segment).first + first) * kFloatBytes;
  const View weights = options_.stage == 0 ? store_.whole_segment(run.unit, run.segment)
                                           : store_.slice(run.unit, run.segment);
  kernels::AdamPiece piece;
  piece.group = group_of(layout_.unit(run.unit).parameters[index(run.parameter)].spec);
  piece.run.sum = sum_of(run.unit, run.segment).slice(first, run.count);
  piece.run.master = masters(run.unit, run.segment).slice(first, run.count);
  piece.run.m = {m_.data() + state_bytes, run.count, DType::kFloat32};
  piece.run.v = {v_.data() + state_bytes, run.count, DType::kFloat32};
  if (weights.dtype != DType::kFloat32) piece.run.weight = weights.slice(first, run.count);
  pieces_.push_back(piece);
}

std::size_t ShardedOptimizer::group_of(const ParameterSpec& spec) {
  const Group group{spec.decay, spec.lr_scale};
  const auto known = std::find(groups_.begin(), groups_.end(), group);
  const auto number = static_cast<std::size_t>(known - groups_.begin());
  if (known == groups_.end()) groups_.push_back(group);
  return number;
}

void ShardedOptimizer::make_sum_runs(int unit, int segment) {
  const std::int64_t slice_count = layout_.unit(unit).segments[index(segment)].slice_count;
  const std::int64_t first = communicator_.rank() * slice_count;
  for (const Run& run : layout_.runs(unit, segment, first, first + slice_count)) {
    const View sums = reducer_.sums(unit, segment).slice(run.segment_first - first, run.count);
    for (std::int64_t at = 0; at < run.count; at += kernels::kGrain) {
      sum_views_.push_back(sums.slice(at, std::min(kernels::kGrain, run.count - at)));
      sum_parameters_.push_back(layout_.unit(unit).parameters[index(run.parameter)].index);
    }
  }
}

// Padding is no parameter's, and stays out.
ShardedOptimizer::Norm ShardedOptimizer::squared_norm() const {
  kernels::SquareSum result;
  kernels::square_sum(sum_views_, result, communicator_.device().compute());
  Norm norm{.squares = result.sum};
  if (result.first_non_finite >= 0)
    norm.non_finite = sum_parameters_[static_cast<std::size_t>(result.first_non_finite)];
  return norm;
}

kernels::AdamScalars ShardedOptimizer::scalars_of(const Group& group,
                                                  const UpdateScalars& scalars) const {
  const auto [beta1, beta2] = adam_.betas;
  const double lr = scalars.lr * static_cast<double>(group.lr_scale);
  const double decay = group.decay ? adam_.weight_decay : 0.0;
  const auto k = static_cast<double>(scalars.update);
  kernels::AdamScalars result;
  result.factor = scalars.factor;
  result.beta1 = static_cast<float>(beta1);
  result.one_minus_beta1 = static_cast<float>(1 - beta1);
  result.beta2 = static_cast<float>(beta2);
  result.one_minus_beta2 = static_cast<float>(1 - beta2);
  result.step_size = static_cast<float>(adam_.bias_correction ? lr / (1 - std::pow(beta1, k)) : lr);
  result.root_correction =
      static_cast<float>(adam_.bias_correction ? std::sqrt(1 - std::pow(beta2, k)) : 1.0);
  result.eps = static_cast<float>(adam_.eps);
  result.decay = adam_.decoupled ? static_cast<float>(1 - lr * decay) : 1.0F;
  result.l2 = adam_.decoupled ? 0.0F : static_cast<float>(decay);
  return result;
}

void ShardedOptimizer::update(std::span<const kernels::AdamPiece> pieces) {
  kernels::adam(pieces, scalars_, communicator_.device().compute());
}

void ShardedOptimizer::update(const UpdateScalars& scalars) {
  for (std::size_t g = 0; g < groups_.size(); ++g)
    scalars_[g] = scalars_of(groups_[g], scalars);
  if (options_.stage == 0) return update_replicated();
  update(pieces_);
}

std::int64_t ShardedOptimizer::longest_piece() const {
  std::int64_t longest = 0;
  for (const kernels::AdamPiece& piece : pieces_)
    longest = std::max(longest, piece.run.master.count);
  return longest;
}

// While one unit is updated the next one's sums are gathered.
void ShardedOptimizer::update_replicated() {
  const int count = static_cast<int>(trainable_units_.size());
  if (count == 0) return;
  Event gathered = gather_sums(0);
  std::size_t begin = 0;
  for (int i = 0; i < count; ++i) {
    gathered.wait();
    if (i + 1 < count) gathered = gather_sums(i + 1);
    const std::size_t end = piece_ends_[index(i)];
    update(std::span(pieces_).subspan(begin, end - begin));
    begin = end;
  }
}

Event ShardedOptimizer::gather_sums(int trainable_unit) {
  const int unit = trainable_units_[index(trainable_unit)];
  auto& parts = parts_[index(turns_[index(unit)])];
  parts.clear();
  for (int s = 0; s < static_cast<int>(layout_.unit(unit).segments.size()); ++s) {
    if (layout_.unit(unit).segments[index(s)].trainable)
      parts.push_back({reducer_.sums(unit, s), gathered_sum(unit, s)});
  }
  stream_.wait(communicator_.device().compute().record());
  return communicator_.all_gather(parts, {layout_.unit(unit).name}, stream_);
}

}  // namespace sifr
