#include "zero/gradient_memory.hpp"

#include "device/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace sifr {

GradientMemory::GradientMemory(const Layout& layout,
                               const ZeroOptions& options,
                               const MemoryPlan& plan,
                               Communicator& communicator)
    : layout_(layout),
      communicator_(communicator),
      poisons_(options.poison),
      ring_bytes_(options.stage < 2 ? 0 : plan.gradients - plan.dedicated),
      memory_(communicator.allocate(plan.gradients, Purpose::kGradients)),
      current_(static_cast<std::size_t>(layout.unit_count()), 0) {
  std::int64_t offset = ring_bytes_;
  for (const UnitLayout& unit : layout.units()) {
    const bool is_fixed = options.stage < 2 || unit.gradient_leases > 1;
    fixed_.push_back(is_fixed ? offset : -1);
    if (is_fixed) offset += unit.gradient_bytes;
  }
  measure_neighbours();
  blocks_.reserve(static_cast<std::size_t>(layout.unit_count()) * 4);
  if (poisons_) kernels::poison(bytes_at(0, memory_.bytes()), communicator.device().compute());
}

void GradientMemory::measure_neighbours() {
  neighbour_.resize(fixed_.size(), 0);
  std::size_t before = fixed_.size();
  for (std::size_t u = 0; u < fixed_.size(); ++u) {
    const std::int64_t bytes = layout_.unit(static_cast<int>(u)).gradient_bytes;
    if (fixed_[u] >= 0 || bytes == 0) continue;
    if (before < u) {
      neighbour_[u] = layout_.unit(static_cast<int>(before)).gradient_bytes;
      neighbour_[before] = std::max(neighbour_[before], bytes);
    }
    before = u;
  }
}

View GradientMemory::bytes_at(std::int64_t offset, std::int64_t bytes) const {
  return {memory_.data() + offset, bytes / size_of(DType::kFloat32), DType::kFloat32};
}

bool GradientMemory::open(int unit) {
  const auto index = static_cast<std::size_t>(unit);
  if (fixed_[index] >= 0) return open_fixed(unit);
  const std::int64_t bytes = layout_.unit(unit).gradient_bytes;
  std::int64_t place = find_place(bytes, neighbour_[index]);
  if (place < 0 && has_pending()) return false;
  if (place < 0) place = find_place(bytes, 0);
  current_[index] = kNowhere;
  if (place < 0) return true;
  take(unit, place, bytes);
  head_ = place + bytes;
  return true;
}

bool GradientMemory::open_fixed(int unit) {
  const bool is_pending = std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return block.unit == unit && block.state == State::kPending;
  });
  if (is_pending) return false;
  take(unit, fixed_[static_cast<std::size_t>(unit)], layout_.unit(unit).gradient_bytes);
  return true;
}

bool GradientMemory::is_blocked(std::int64_t offset, std::int64_t bytes) const {
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return block.state != State::kInFlight && block.offset < offset + bytes &&
           offset < block.offset + block.bytes;
  });
}

// The first place behind head_, around the ring, that only reductions in flight may still occupy,
// and that leaves `beside` bytes in one piece on one side of it. -1: none.
std::int64_t GradientMemory::find_place(std::int64_t bytes, std::int64_t beside) const {
  std::int64_t best = -1;
  const auto consider = [&](std::int64_t offset) {
    if (offset + bytes > ring_bytes_ || is_blocked(offset, bytes)) return;
    if (offset < beside && ring_bytes_ - offset - bytes < beside) return;
    const auto steps = [&](std::int64_t place) {
      return place >= head_ ? place - head_ : place - head_ + ring_bytes_;
    };
    if (best < 0 || steps(offset) < steps(best)) best = offset;
  };
  consider(head_);
  consider(0);
  consider(ring_bytes_ - bytes);
  for (const Block& block : blocks_) {
    if (block.state != State::kInFlight && block.offset < ring_bytes_)
      consider(block.offset + block.bytes);
  }
  return best;
}

void GradientMemory::take(int unit, std::int64_t offset, std::int64_t bytes) {
  const auto overlaps = [&](const Block& block) {
    return block.offset < offset + bytes && offset < block.offset + block.bytes;
  };
  for (const Block& block : blocks_) {
    if (overlaps(block)) block.done.wait();
  }
  std::erase_if(blocks_, [&](const Block& block) {
    return overlaps(block) || (block.state == State::kInFlight && block.done.is_complete());
  });
  blocks_.push_back({unit, offset, bytes});
  current_[static_cast<std::size_t>(unit)] = offset;
}

std::byte* GradientMemory::at(int unit) const {
  const std::int64_t place = current_[static_cast<std::size_t>(unit)];
  return place == kNowhere ? nullptr : memory_.data() + place;
}

View GradientMemory::segment(int unit, int segment) const {
  const SegmentLayout& place = layout_.unit(unit).segments[static_cast<std::size_t>(segment)];
  std::byte* const data = at(unit);
  return {data == nullptr ? nullptr : data + place.gradient_offset, place.count, place.gradients};
}

void GradientMemory::close(int unit) {
  for (Block& block : blocks_) {
    if (block.unit == unit && block.state == State::kOpen) block.state = State::kPending;
  }
}

void GradientMemory::retire(int unit, Stream& stream) {
  for (Block& block : blocks_) {
    if (block.unit != unit || block.state != State::kPending) continue;
    if (poisons_) kernels::poison(bytes_at(block.offset, block.bytes), stream);
    block.state = State::kInFlight;
    block.done = stream.record();
  }
}

void GradientMemory::wait() const {
  for (const Block& block : blocks_)
    block.done.wait();
}

void GradientMemory::clear() {
  wait();
  blocks_.clear();
}

bool GradientMemory::has_pending() const {
  return std::any_of(blocks_.begin(), blocks_.end(), [](const Block& block) {
    return block.state == State::kPending;
  });
}

void GradientMemory::require_place(int unit) const {
  if (at(unit) != nullptr) return;
  std::string open;
  for (const Block& block : blocks_) {
    if (block.state == State::kOpen)
      open += fmt::format("{}'{}'", open.empty() ? "" : ", ", layout_.unit(block.unit).name);
  }
  throw OutOfMemory(
      fmt::format(
          "the gradient ring of {} has no room for unit '{}' ({}) while gradients of "
          "{} are open: "
          "end their leases earlier, declare larger units, or use zero_optimization.stage 1",
          mib(ring_bytes_),
          layout_.unit(unit).name,
          mib(layout_.unit(unit).gradient_bytes),
          open.empty() ? "no unit" : open),
      communicator_.device().account().table());
}

}  // namespace sifr
