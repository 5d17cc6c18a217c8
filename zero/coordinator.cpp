#include "zero/coordinator.hpp"

#include "device/kernels.hpp"

#include <algorithm>

namespace sifr {

namespace {

void append(std::vector<LeaseEvent>& order, std::initializer_list<LeaseAct> acts, int unit) {
  for (const LeaseAct act : acts)
    order.push_back({act, unit});
}

// Declaration order forward, then the units with several uses again, and all of it back.
std::vector<LeaseEvent> first_order(const Layout& layout, bool is_training) {
  std::vector<LeaseEvent> order;
  for (int u = 0; u < layout.unit_count(); ++u)
    append(order, {LeaseAct::kLease, LeaseAct::kRelease}, u);
  if (!is_training) return order;
  const auto has_several = [&](int u) { return layout.unit(u).gradient_leases > 1; };
  for (int pass = 0; pass < 2; ++pass) {
    for (int u = 0; u < layout.unit_count(); ++u) {
      if (!has_several(u)) continue;
      append(order, {LeaseAct::kLease}, u);
      if (pass == 1) append(order, {LeaseAct::kOpen}, u);
      append(order, {LeaseAct::kRelease}, u);
    }
  }
  for (int u = layout.unit_count() - 1; u >= 0; --u) {
    if (layout.unit(u).gradient_bytes == 0) {
      append(order, {LeaseAct::kLease, LeaseAct::kRelease}, u);
      continue;
    }
    append(order, {LeaseAct::kLease}, u);
    if (!has_several(u)) append(order, {LeaseAct::kOpen}, u);
    append(order, {LeaseAct::kClose, LeaseAct::kRelease}, u);
  }
  return order;
}

}  // namespace

Coordinator::Coordinator(const Layout& layout,
                         const Parts& parts,
                         Communicator& communicator,
                         bool is_training)
    : layout_(layout),
      parts_(parts),
      communicator_(communicator),
      order_(layout.unit_count(), first_order(layout, is_training)),
      units_(static_cast<std::size_t>(layout.unit_count())) {
  noted_.reserve(static_cast<std::size_t>(layout.unit_count()) * 4 + 16);
  short_units_.reserve(units_.size());
  order_.begin();
}

void Coordinator::reach(LeaseEvent event) {
  order_.reach(event, [this](LeaseEvent left_out) { return leave_out(left_out); });
}

// Takes part in what this rank does not do itself. False: the event comes later, as an extra one.
bool Coordinator::leave_out(LeaseEvent event) {
  switch (event.act) {
    case LeaseAct::kLease:
      gather(event.unit);
      break;
    case LeaseAct::kRelease:
      if (at(event.unit).weight_leases > 0) return false;
      let_go(event.unit);
      break;
    case LeaseAct::kOpen:
      open(event.unit);
      break;
    case LeaseAct::kClose:
      if (at(event.unit).is_started) return false;
      close(event.unit, false);
      break;
  }
  return true;
}

void Coordinator::gather(int unit) {
  if (parts_.window == nullptr) return;
  parts_.window->hold(unit, order_.ahead());
  at(unit).holds_window = true;
  parts_.window->prefetch(order_.ahead());
}

void Coordinator::let_go(int unit) {
  if (!at(unit).holds_window) return;
  at(unit).holds_window = false;
  parts_.window->release(unit, order_.ahead());
}

void Coordinator::open(int unit) {
  if (at(unit).is_open) return;
  if (!parts_.gradients->open(unit)) {
    parts_.reducer->flush();
    if (!parts_.gradients->open(unit))
      throw UsageError("gradient memory: a flushed bucket is still pending");
  }
  at(unit).is_open = true;
}

void Coordinator::close(int unit, bool contributes) {
  open(unit);  // a rank that leaves the unit out takes its place in the ring all the same
  parts_.reducer->close(unit, contributes);
  at(unit).is_open = false;
}

// Ends of leases cannot fail: there is room to note those of all that are open and of one more.
void Coordinator::prepare_lease() {
  take_effect();
  if (noted_.capacity() < noted_.size() + open_leases_ + 2) noted_.reserve(noted_.capacity() * 2);
}

const std::byte* Coordinator::lease_weights(int unit) {
  prepare_lease();
  UnitState& state = at(unit);
  if (state.weight_leases == 0) {
    reach({LeaseAct::kLease, unit});
    gather(unit);
    if (++leased_units_ > 1) depends_on_ends_ = true;
  }
  ++state.weight_leases;
  ++open_leases_;
  return parts_.window != nullptr ? parts_.window->whole(unit) : parts_.store->whole(unit);
}

void Coordinator::release_weights(int unit) noexcept {
  noted_.push_back({LeaseAct::kRelease, unit});
  UnitState& state = at(unit);
  if (++state.noted_releases == state.weight_leases && parts_.window != nullptr)
    parts_.window->hide(unit);
}

Coordinator::Opened Coordinator::open_gradients(int unit) {
  prepare_lease();
  UnitState& state = at(unit);
  const bool is_first = !state.is_started;
  if (is_first && layout_.unit(unit).gradient_bytes > 0) {
    // Where the order opened it before, ranks that leave the unit out have no event here either.
    if (!state.is_open) reach({LeaseAct::kOpen, unit});
    open(unit);
    parts_.gradients->require_place(unit);
    const View buffer{parts_.gradients->at(unit),
                      layout_.unit(unit).gradient_bytes / size_of(DType::kFloat32),
                      DType::kFloat32};
    kernels::fill_zero(buffer, communicator_.device().compute());
  }
  state.is_started = true;
  ++state.gradient_leases;
  ++state.open_gradients;
  ++open_leases_;
  return {layout_.unit(unit).gradient_bytes > 0 ? parts_.gradients->at(unit) : nullptr, is_first};
}

void Coordinator::close_gradients(int unit) noexcept {
  noted_.push_back({LeaseAct::kClose, unit});
  ++at(unit).noted_closings;
}

void Coordinator::abandon_gradients(int unit) noexcept {
  --at(unit).open_gradients;
  --open_leases_;
}

// Each note is gone before it takes effect: what throws is not done twice.
void Coordinator::take_effect() {
  while (!noted_.empty()) {
    const LeaseEvent event = noted_.front();
    noted_.erase(noted_.begin());
    --open_leases_;
    end_lease(event);
  }
}

void Coordinator::end_lease(LeaseEvent event) {
  UnitState& state = at(event.unit);
  if (event.act == LeaseAct::kRelease) {
    --state.noted_releases;
    if (--state.weight_leases > 0) return;
    --leased_units_;
    const auto ahead = order_.ahead();
    if (ahead.empty() || ahead.front() != event) depends_on_ends_ = true;
    reach(event);
    let_go(event.unit);
    return;
  }
  --state.noted_closings;
  const bool is_last = --state.open_gradients == 0 &&
                       state.gradient_leases >= layout_.unit(event.unit).gradient_leases;
  if (!is_last || !state.is_started) return;
  state.is_started = false;
  if (layout_.unit(event.unit).gradient_bytes == 0) return;
  reach(event);
  close(event.unit, true);
}

int Coordinator::open_unit() const noexcept {
  for (int u = 0; u < layout_.unit_count(); ++u) {
    if (at(u).weight_leases > at(u).noted_releases || at(u).open_gradients > at(u).noted_closings)
      return u;
  }
  return -1;
}

void Coordinator::begin_micro_batch() {
  order_.begin();
  depends_on_ends_ = false;
}

void Coordinator::end_micro_batch() {
  take_effect();
  short_units_.clear();
  // Units whose declared leases did not all come: first in the agreed order, then in declaration
  // order back.
  const auto close_started = [this](int unit) {
    UnitState& state = at(unit);
    if (!state.is_started || layout_.unit(unit).gradient_bytes == 0) return;
    state.is_started = false;
    short_units_.push_back(unit);
    reach({LeaseAct::kClose, unit});
    close(unit, true);
  };
  while (true) {
    const auto ahead = order_.ahead();
    const auto next = std::find_if(ahead.begin(), ahead.end(), [this](LeaseEvent event) {
      return event.act == LeaseAct::kClose && at(event.unit).is_started;
    });
    if (next == ahead.end()) break;
    close_started(next->unit);
  }
  for (int u = layout_.unit_count() - 1; u >= 0; --u)
    close_started(u);
  order_.finish([this](LeaseEvent event) { return leave_out(event); });
  for (int u = 0; u < layout_.unit_count(); ++u) {
    let_go(u);
    if (at(u).is_open) close(u, false);  // opened by others, closed by none
    at(u).gradient_leases = 0;
    at(u).is_started = false;
  }
  if (parts_.reducer == nullptr) return;
  parts_.reducer->flush();
  parts_.reducer->wait();
}

void Coordinator::abandon_micro_batch() {
  noted_.clear();
  open_leases_ = 0;
  leased_units_ = 0;
  for (int u = 0; u < layout_.unit_count(); ++u) {
    let_go(u);
    at(u) = {};
  }
  if (parts_.reducer != nullptr) parts_.reducer->drop_pending();
  if (parts_.gradients != nullptr) parts_.gradients->clear();
}

}  // namespace sifr
