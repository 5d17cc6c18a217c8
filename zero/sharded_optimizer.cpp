#include "zero/sharded_optimizer.hpp"

#include "zero/after_compute.hpp"

#include <algorithm>
#include <cmath>

namespace sifr {

namespace {
constexpr std::int64_t kFloatBytes = size_of(DType::kFloat32);
constexpr std::size_t index(int value) {
  return static_cast<std::size_t>(value);
}

kernels::AdamRun slice(const kernels::AdamRun& run, std::int64_t first, std::int64_t count) {
  kernels::AdamRun part;
  part.sum = run.sum.slice(first, count);
  part.master = run.master.slice(first, count);
  part.m = run.m.slice(first, count);
  part.v = run.v.slice(first, count);
  if (run.weight.count > 0) part.weight = run.weight.slice(first, count);
  return part;
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
  find_groups();
  scalars_.resize(groups_.size());
  pieces_.reserve(kBatch);
  sum_views_.reserve(kBatch);
  sum_parameters_.reserve(kBatch);
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

// f(piece) for the stretches of what this rank updates, cut where a chunk of the moments ends.
template <class F>
void ShardedOptimizer::for_each_piece(int unit, int segment, F&& f) const {
  const bool is_bounded = options_.chunk > 0 && options_.chunk < kernels::kGrain;
  const std::int64_t chunk = is_bounded ? round_up(options_.chunk, kQuantum) : kernels::kGrain;
  const Range range = owned(unit, segment);
  const std::int64_t shift = state(unit, segment).first - range.first;
  layout_.for_each_stretch(
      unit, segment, range.first, range.first + range.count, [&](Stretch rest) {
        while (rest.count > 0) {
          Stretch piece = rest;
          piece.count = std::min(rest.count, chunk - (shift + rest.segment_first) % chunk);
          f(piece);
          rest.parameter_first += piece.count;
          rest.segment_first += piece.count;
          rest.count -= piece.count;
        }
      });
}

void ShardedOptimizer::find_groups() {
  groups_of_.resize(index(layout_.parameter_count()));
  for (const UnitLayout& unit : layout_.units()) {
    for (const ParameterLayout& parameter : unit.parameters) {
      const Group group{parameter.spec.decay, parameter.spec.lr_scale};
      const auto known = std::find(groups_.begin(), groups_.end(), group);
      groups_of_[index(parameter.index)] = static_cast<std::size_t>(known - groups_.begin());
      if (known == groups_.end()) groups_.push_back(group);
    }
  }
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

void ShardedOptimizer::update(const UpdateScalars& scalars) {
  for (std::size_t g = 0; g < groups_.size(); ++g)
    scalars_[g] = scalars_of(groups_[g], scalars);
  if (options_.stage == 0) return update_replicated();
  for (const int unit : trainable_units_)
    add_pieces(unit);
  update_pieces();
}

// While one unit is updated the next one's sums are gathered.
void ShardedOptimizer::update_replicated() {
  const int count = static_cast<int>(trainable_units_.size());
  if (count == 0) return;
  Event gathered = gather_sums(0);
  for (int i = 0; i < count; ++i) {
    gathered.wait();
    if (i + 1 < count) gathered = gather_sums(i + 1);
    add_pieces(trainable_units_[index(i)]);
    update_pieces();
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
  return communicator_.all_gather(
      parts, {layout_.unit(unit).name}, after_compute(communicator_, stream_));
}

void ShardedOptimizer::add_pieces(int unit) {
  for (int s = 0; s < static_cast<int>(layout_.unit(unit).segments.size()); ++s) {
    if (!layout_.unit(unit).segments[index(s)].trainable) continue;
    const kernels::AdamRun run = run_of(unit, s);
    const std::int64_t begin = owned(unit, s).first;
    for_each_piece(unit, s, [&](const Stretch& piece) {
      if (pieces_.size() == kBatch) update_pieces();
      const int parameter = layout_.unit(unit).parameters[index(piece.parameter)].index;
      pieces_.push_back(
          {slice(run, piece.segment_first - begin, piece.count), groups_of_[index(parameter)]});
    });
  }
}

void ShardedOptimizer::update_pieces() {
  Stream& compute = communicator_.device().compute();
  kernels::adam(pieces_, scalars_, compute);
  compute.record().wait();  // the pieces are read until then
  pieces_.clear();
}

// All that this rank updates of a segment.
kernels::AdamRun ShardedOptimizer::run_of(int unit, int segment) const {
  const std::int64_t count = owned(unit, segment).count;
  const std::int64_t state_bytes = state(unit, segment).first * kFloatBytes;
  const View weights =
      options_.stage == 0 ? store_.whole_segment(unit, segment) : store_.slice(unit, segment);
  kernels::AdamRun run;
  run.sum = sum_of(unit, segment);
  run.master = masters(unit, segment);
  run.m = {m_.data() + state_bytes, count, DType::kFloat32};
  run.v = {v_.data() + state_bytes, count, DType::kFloat32};
  if (weights.dtype != DType::kFloat32) run.weight = weights;
  return run;
}

std::int64_t ShardedOptimizer::longest_piece() const {
  std::int64_t longest = 0;
  for (const int u : trainable_units_) {
    for (int s = 0; s < static_cast<int>(layout_.unit(u).segments.size()); ++s) {
      if (!layout_.unit(u).segments[index(s)].trainable) continue;
      for_each_piece(u, s, [&](const Stretch& piece) { longest = std::max(longest, piece.count); });
    }
  }
  return longest;
}

}  // namespace sifr
