#include "zero/gather_window.hpp"

#include "device/device.hpp"
#include "device/kernels.hpp"
#include "zero/after_compute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>

namespace sifr {

GatherWindow::GatherWindow(const Layout& layout,
                           const ZeroOptions& options,
                           const WeightStore& store,
                           Communicator& communicator,
                           Stream& stream,
                           std::int64_t bytes)
    : layout_(layout),
      options_(options),
      store_(store),
      communicator_(communicator),
      stream_(stream),
      memory_(communicator.device().allocate(bytes, Purpose::kWindow)),
      is_persistent_(persistent_units(layout, options)),
      units_(static_cast<std::size_t>(layout.unit_count())) {
  by_offset_.reserve(units_.size());
  for (int u = 0; u < layout.unit_count(); ++u)
    at(u).parts.reserve(layout.unit(u).segments.size());
  if (options.poison) {
    kernels::poison({memory_.data(), bytes / size_of(DType::kFloat32), DType::kFloat32},
                    communicator.device().compute());
  }
}

GatherWindow::~GatherWindow() {
  for (const Resident& unit : units_) {
    try {
      unit.gathered.wait();
    } catch (const std::exception&) {
      continue;  // a failed gather writes no more
    }
  }
}

std::int64_t GatherWindow::next_use(int unit, std::span<const LeaseEvent> ahead) noexcept {
  const auto found = std::find(ahead.begin(), ahead.end(), LeaseEvent{LeaseAct::kLease, unit});
  return found == ahead.end() ? kNever : found - ahead.begin();
}

void GatherWindow::hold(int unit, std::span<const LeaseEvent> ahead) {
  if (!at(unit).is_resident && !make_room(unit, ahead, kNow)) throw_full(unit);
  at(unit).is_held = true;
}

const std::byte* GatherWindow::whole(int unit) {
  at(unit).gathered.wait();
  return memory_.data() + at(unit).offset;
}

bool GatherWindow::is_far(int unit, std::span<const LeaseEvent> ahead) const {
  std::int64_t distance = 0;
  for (const LeaseEvent event : ahead) {
    if (event.act != LeaseAct::kLease) continue;
    if (event.unit == unit) return distance > options_.max_reuse_distance;
    distance += layout_.unit(event.unit).elements;
  }
  return distance > options_.max_reuse_distance;
}

void GatherWindow::release(int unit, std::span<const LeaseEvent> ahead) {
  if (!at(unit).is_held) return;
  at(unit).is_held = false;
  if (is_persistent_[static_cast<std::size_t>(unit)]) return;
  if (options_.poison || is_far(unit, ahead)) drop(unit);
}

void GatherWindow::prefetch(std::span<const LeaseEvent> ahead) {
  if (options_.poison) return;
  std::int64_t budget = options_.prefetch;
  for (std::size_t i = 0; i < ahead.size() && budget > 0; ++i) {
    const int unit = ahead[i].unit;
    if (ahead[i].act != LeaseAct::kLease || next_use(unit, ahead) != static_cast<std::int64_t>(i) ||
        at(unit).is_held)
      continue;
    budget -= layout_.unit(unit).elements;
    if (at(unit).is_resident) continue;
    if (!make_room(unit, ahead, static_cast<std::int64_t>(i))) return;
  }
}

// The resident, free unit whose next use lies farthest and beyond `beyond`; -1 if there is none.
int GatherWindow::farthest(std::span<const LeaseEvent> ahead, std::int64_t beyond) const {
  int found = -1;
  std::int64_t found_use = 0;
  for (const int unit : by_offset_) {
    if (at(unit).is_held || is_persistent_[static_cast<std::size_t>(unit)]) continue;
    const std::int64_t use = next_use(unit, ahead);
    if (use <= beyond) continue;
    if (found < 0 || use > found_use) {
      found = unit;
      found_use = use;
    }
  }
  return found;
}

// First fit. -1: no gap is large enough.
std::int64_t GatherWindow::find_gap(std::int64_t bytes) const {
  std::int64_t end = 0;
  for (const int unit : by_offset_) {
    if (at(unit).offset - end >= bytes) return end;
    end = std::max(end, at(unit).offset + layout_.unit(unit).weight_bytes);
  }
  return memory_.bytes() - end >= bytes ? end : -1;
}

std::int64_t GatherWindow::find_place(int unit) const {
  const UnitLayout& layout = layout_.unit(unit);
  return options_.poison ? layout.weight_offset : find_gap(layout.weight_bytes);
}

// Gathers `unit`, used at place `use` of the order (kNow: at once), after dropping what is needed
// later than that.
bool GatherWindow::make_room(int unit, std::span<const LeaseEvent> ahead, std::int64_t use) {
  while (live_ + layout_.unit(unit).elements > options_.max_live) {
    const int victim = farthest(ahead, use);
    if (victim < 0 && use == kNow) break;  // the limit holds back prefetches only
    if (victim < 0) return false;
    drop(victim);
  }
  std::int64_t offset = find_place(unit);
  while (offset < 0) {
    const int victim = farthest(ahead, use);
    if (victim < 0) return false;
    drop(victim);
    offset = find_place(unit);
  }
  gather(unit, offset);
  return true;
}

void GatherWindow::gather(int unit, std::int64_t offset) {
  const UnitLayout& layout = layout_.unit(unit);
  Resident& resident = at(unit);
  resident.offset = offset;
  resident.is_resident = true;
  live_ += layout.elements;
  const auto place = std::find_if(
      by_offset_.begin(), by_offset_.end(), [&](int other) { return at(other).offset > offset; });
  by_offset_.insert(place, unit);
  fetch(unit);
}

void GatherWindow::fetch(int unit) {
  Resident& resident = at(unit);
  Stream& compute = communicator_.device().compute();
  resident.parts.clear();
  store_.add_parts(unit, memory_.data() + resident.offset, resident.parts);
  if (store_.is_whole()) {
    for (int s = 0; s < static_cast<int>(resident.parts.size()); ++s)
      kernels::cast(store_.whole_segment(unit, s),
                    resident.parts[static_cast<std::size_t>(s)].whole,
                    compute);
    return;
  }
  resident.gathered = communicator_.all_gather(
      resident.parts, {layout_.unit(unit).name}, after_compute(communicator_, stream_));
}

void GatherWindow::drop(int unit) {
  Resident& resident = at(unit);
  resident.gathered.wait();  // its parts are about to be free for another gather
  resident.is_resident = false;
  live_ -= layout_.unit(unit).elements;
  by_offset_.erase(std::find(by_offset_.begin(), by_offset_.end(), unit));
  if (options_.poison) poison(unit);
}

void GatherWindow::poison(int unit) {
  for (const GatherPart& part : at(unit).parts)
    kernels::poison(part.whole, communicator_.device().compute());
}

void GatherWindow::hide(int unit) noexcept {
  if (!options_.poison) return;
  try {
    poison(unit);
  } catch (const std::exception&) {
    return;  // the stream has failed, and the next call says so
  }
}

bool GatherWindow::holds_all() const noexcept {
  std::int64_t elements = 0;
  for (const UnitLayout& unit : layout_.units())
    elements += unit.elements;
  return !options_.poison && elements <= options_.max_live;  // debug mode drops at each release
}

void GatherWindow::refresh() {
  while (!by_offset_.empty())
    drop(by_offset_.back());
  for (int u = 0; u < layout_.unit_count(); ++u) {
    if (!is_persistent_[static_cast<std::size_t>(u)]) continue;
    gather(u, find_gap(layout_.unit(u).weight_bytes));
  }
}

void GatherWindow::throw_full(int unit) const {
  std::string held;
  for (const int other : by_offset_) {
    if (at(other).is_held)
      held += fmt::format("{}'{}'", held.empty() ? "" : ", ", layout_.unit(other).name);
  }
  throw OutOfMemory(
      fmt::format("the gather window of {} has no room for unit '{}' ({}) while leases "
                  "on {} are "
                  "open: end them earlier, or raise zero_optimization.stage3_max_live_parameters",
                  mib(memory_.bytes()),
                  layout_.unit(unit).name,
                  mib(layout_.unit(unit).weight_bytes),
                  held.empty() ? "no unit" : held),
      communicator_.device().account().table());
}

}  // namespace sifr
