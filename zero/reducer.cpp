#include "zero/reducer.hpp"

#include "device/kernels.hpp"
#include "zero/after_compute.hpp"

#include <algorithm>

namespace sifr {

Reducer::Reducer(const Layout& layout,
                 const ZeroOptions& options,
                 const MemoryPlan& plan,
                 GradientMemory& memory,
                 Communicator& communicator,
                 Stream& stream)
    : layout_(layout),
      options_(options),
      memory_(memory),
      communicator_(communicator),
      stream_(stream),
      sums_(communicator.allocate(plan.sums, Purpose::kGradients)),
      accumulators_(options.reduce_at_boundary
                        ? communicator.allocate(plan.accumulators, Purpose::kGradients)
                        : SharedBuffer()),
      has_sums_(static_cast<std::size_t>(layout.unit_count())),
      has_accumulated_(static_cast<std::size_t>(layout.unit_count())) {
  std::size_t segments = 0;
  for (const UnitLayout& unit : layout.units())
    segments += unit.segments.size();
  for (Bucket& bucket : buckets_)
    bucket.parts.reserve(segments);
  pending_.reserve(static_cast<std::size_t>(layout.unit_count()) * 2);
}

Reducer::~Reducer() {
  for (const Bucket& bucket : buckets_) {
    try {
      bucket.done.wait();
    } catch (const std::exception&) {
      continue;  // a failed reduction touches nothing more
    }
  }
}

View Reducer::sums(int unit, int segment) const {
  const SegmentLayout& place = layout_.unit(unit).segments[static_cast<std::size_t>(segment)];
  return {sums_.data() + place.arena_first * size_of(DType::kFloat32),
          place.slice_count,
          DType::kFloat32};
}

View Reducer::accumulator(int unit, int segment) const {
  const UnitLayout& layout = layout_.unit(unit);
  const SegmentLayout& place = layout.segments[static_cast<std::size_t>(segment)];
  return {accumulators_.data() + (layout.sum_first + place.sum_first) * size_of(DType::kFloat32),
          place.count,
          DType::kFloat32};
}

void Reducer::close(int unit, bool contributes) {
  if (options_.reduce_at_boundary) {
    memory_.close(unit);
    if (contributes) accumulate_locally(unit);
    memory_.retire(unit, communicator_.device().compute());
    return;
  }
  if (contributes) narrow(unit);
  add(unit, contributes);
}

bool Reducer::is_narrowed(const SegmentLayout& segment) const {
  return options_.wire && size_of(*options_.wire) < size_of(segment.gradients);
}

// To the wire's dtype, in place. A wider wire changes nothing: the owner widens exactly.
void Reducer::narrow(int unit) {
  for (int s = 0; s < static_cast<int>(layout_.unit(unit).segments.size()); ++s) {
    const SegmentLayout& segment = layout_.unit(unit).segments[static_cast<std::size_t>(s)];
    if (!segment.trainable || !is_narrowed(segment)) continue;
    kernels::narrow_in_place(
        memory_.segment(unit, s), *options_.wire, communicator_.device().compute());
  }
}

void Reducer::accumulate_locally(int unit) {
  const auto index = static_cast<std::size_t>(unit);
  const auto into = has_accumulated_[index] ? kernels::Into::kAdd : kernels::Into::kWrite;
  for (int s = 0; s < static_cast<int>(layout_.unit(unit).segments.size()); ++s) {
    if (!layout_.unit(unit).segments[static_cast<std::size_t>(s)].trainable) continue;
    const ConstView gradient = memory_.segment(unit, s);
    kernels::sum_in_order(
        std::span(&gradient, 1), accumulator(unit, s), into, communicator_.device().compute());
  }
  has_accumulated_[index] = true;
}

void Reducer::reduce_accumulators() {
  for (int u = layout_.unit_count() - 1; u >= 0; --u) {
    if (layout_.unit(u).sum_count > 0) add(u, has_accumulated_[static_cast<std::size_t>(u)]);
  }
  flush();
}

void Reducer::add(int unit, bool contributes) {
  const UnitLayout& layout = layout_.unit(unit);
  if (pending_elements_ + layout.sum_count > options_.reduce_bucket) flush();
  memory_.close(unit);  // now: the flush retires what an earlier closing of this unit has left
  if (options_.reduce_bucket > 0 && layout.sum_count > options_.reduce_bucket) {
    add_cut(unit, contributes);
  } else {
    add_whole(unit, contributes);
  }
  has_sums_[static_cast<std::size_t>(unit)] = true;
  // Half the ring is on its way while the other half fills.
  if (memory_.ring_bytes() > 0 && pending_bytes_ * 2 >= memory_.ring_bytes()) flush();
}

void Reducer::clear_missing_sums() {
  for (int u = 0; u < layout_.unit_count(); ++u) {
    if (has_sums_[static_cast<std::size_t>(u)]) continue;
    for (int s = 0; s < static_cast<int>(layout_.unit(u).segments.size()); ++s) {
      if (layout_.unit(u).segments[static_cast<std::size_t>(s)].trainable)
        kernels::fill_zero(sums(u, s), communicator_.device().compute());
    }
  }
}

ReducePart Reducer::part(int unit, int segment, bool contributes) const {
  const SegmentLayout& place = layout_.unit(unit).segments[static_cast<std::size_t>(segment)];
  ReducePart part;
  part.slice_count = place.slice_count;
  part.sum = sums(unit, segment);
  part.accumulate = has_sums_[static_cast<std::size_t>(unit)];
  if (options_.reduce_at_boundary) {
    part.whole = accumulator(unit, segment);
  } else {
    part.whole = memory_.segment(unit, segment);
    if (is_narrowed(place)) part.whole.dtype = *options_.wire;
  }
  if (!contributes) part.whole.count = 0;
  return part;
}

void Reducer::add_whole(int unit, bool contributes) {
  const UnitLayout& layout = layout_.unit(unit);
  for (int s = 0; s < static_cast<int>(layout.segments.size()); ++s) {
    if (layout.segments[static_cast<std::size_t>(s)].trainable)
      buckets_[filling_].parts.push_back(part(unit, s, contributes));
  }
  buckets_[filling_].add_name(layout.name);
  pending_.push_back(unit);
  pending_elements_ += layout.sum_count;
  pending_bytes_ += layout.gradient_bytes;
}

// One collective a piece: elements [first, first + length) of every slice, so that every rank owns
// a part of it.
void Reducer::add_cut(int unit, bool contributes) {
  const UnitLayout& layout = layout_.unit(unit);
  const std::int64_t quanta =
      std::max<std::int64_t>(1, options_.reduce_bucket / layout_.group_size() / kQuantum);
  const std::int64_t length = quanta * kQuantum;
  for (int s = 0; s < static_cast<int>(layout.segments.size()); ++s) {
    const SegmentLayout& segment = layout.segments[static_cast<std::size_t>(s)];
    if (!segment.trainable) continue;
    for (std::int64_t first = 0; first < segment.slice_count; first += length) {
      ReducePart piece = part(unit, s, contributes);
      piece.first = first;
      piece.sum = piece.sum.slice(first, std::min(length, segment.slice_count - first));
      buckets_[filling_].parts.push_back(piece);
      start(layout.name);
    }
  }
  memory_.retire(unit, stream_);
}

void Reducer::flush() {
  if (pending_.empty()) return;
  const Bucket& bucket = buckets_[filling_];
  start({bucket.names.data(), bucket.names_length});
  for (const int unit : pending_)
    memory_.retire(unit, stream_);
  forget_pending();
}

void Reducer::forget_pending() noexcept {
  pending_.clear();
  pending_elements_ = 0;
  pending_bytes_ = 0;
}

void Reducer::start(std::string_view name) {
  Bucket& bucket = buckets_[filling_];
  bucket.done =
      communicator_.reduce_scatter(bucket.parts, {name}, after_compute(communicator_, stream_));
  filling_ = (filling_ + 1) % buckets_.size();
  buckets_[filling_].done.wait();  // its parts are read until then
  buckets_[filling_].empty();
}

void Reducer::Bucket::empty() noexcept {
  parts.clear();
  names_length = 0;
}

void Reducer::Bucket::add_name(std::string_view name) noexcept {
  for (const std::string_view text : {std::string_view(names_length == 0 ? "" : ", "), name}) {
    names_length += text.copy(names.data() + names_length, names.size() - names_length);
  }
}

void Reducer::wait() {
  for (const Bucket& bucket : buckets_)
    bucket.done.wait();
  memory_.wait();
}

void Reducer::drop_pending() {
  buckets_[filling_].empty();
  forget_pending();
}

void Reducer::begin_step() {
  std::fill(has_sums_.begin(), has_sums_.end(), false);
  std::fill(has_accumulated_.begin(), has_accumulated_.end(), false);
}

}  // namespace sifr
