#include "zero/agreed_order.hpp"

#include <algorithm>
#include <utility>

namespace sifr {

namespace {

constexpr int kActs = 4;

// Which byte of `uses` tells of an event: releases follow their lease, openings their closing.
std::size_t use_index(LeaseEvent event) {
  const bool is_weights = event.act == LeaseAct::kLease || event.act == LeaseAct::kRelease;
  return static_cast<std::size_t>(event.unit) * 2 + (is_weights ? 0 : 1);
}

std::uint8_t use_bit(int occurrence) {
  return static_cast<std::uint8_t>(1U << std::min(occurrence, 7));
}

}  // namespace

std::string_view name_of(LeaseAct act) noexcept {
  switch (act) {
    case LeaseAct::kLease:
      return "leases weights of";
    case LeaseAct::kRelease:
      return "releases weights of";
    case LeaseAct::kOpen:
      return "opens gradients of";
    case LeaseAct::kClose:
      return "closes gradients of";
  }
  return {};
}

AgreedOrder::AgreedOrder(int units, std::vector<LeaseEvent> first)
    : order_(std::move(first)),
      uses_(static_cast<std::size_t>(units) * 2),
      counts_(static_cast<std::size_t>(units) * kActs),
      is_leased_(static_cast<std::size_t>(units)) {
  done_.reserve(order_.size() * 2);
  own_.reserve(order_.size() * 2);
  next_.reserve(order_.size() * 2);
}

void AgreedOrder::begin() {
  cursor_ = 0;
  hash_ = 0xCBF29CE484222325U;
  done_.clear();
  own_.clear();
  departure_.reset();
  std::fill(counts_.begin(), counts_.end(), std::uint8_t{0});
}

std::size_t AgreedOrder::find(LeaseEvent event) const noexcept {
  if (event.act == LeaseAct::kRelease) {
    const bool is_next = cursor_ < order_.size() && order_[cursor_] == event;
    return is_next ? cursor_ : kNowhere;
  }
  const auto found =
      std::find(order_.begin() + static_cast<std::ptrdiff_t>(cursor_), order_.end(), event);
  return found == order_.end() ? kNowhere : static_cast<std::size_t>(found - order_.begin());
}

// Releases may come anywhere: they part nobody.
void AgreedOrder::note_departure(LeaseEvent event, std::size_t place) noexcept {
  if (departure_ || event.act == LeaseAct::kRelease) return;
  const auto from = order_.begin() + static_cast<std::ptrdiff_t>(cursor_);
  const auto next = std::find_if(
      from, order_.end(), [](LeaseEvent ahead) { return ahead.act != LeaseAct::kRelease; });
  if (place == static_cast<std::size_t>(next - order_.begin())) return;
  departure_ = {event, next == order_.end() ? std::nullopt : std::optional(*next)};
}

std::uint8_t& AgreedOrder::count(LeaseEvent event) {
  return counts_[static_cast<std::size_t>(event.unit) * kActs +
                 static_cast<std::size_t>(event.act)];
}

void AgreedOrder::log(LeaseEvent event, bool used) {
  std::uint8_t& occurrence = count(event);
  if (used && (event.act == LeaseAct::kLease || event.act == LeaseAct::kClose)) {
    uses_[use_index(event)] |= use_bit(occurrence);
  }
  if (occurrence < 255) ++occurrence;
  done_.push_back(event);
  if (event.act == LeaseAct::kRelease) return;
  if (used) own_.push_back(event);
  hash_ = (hash_ ^ (static_cast<std::uint64_t>(event.unit) * kActs +
                    static_cast<std::uint64_t>(event.act))) *
          0x100000001B3U;
}

void AgreedOrder::merge_uses(std::span<const std::uint8_t> uses) {
  for (std::size_t i = 0; i < uses_.size(); ++i)
    uses_[i] |= uses[i];
}

// A release stays with the lease before it. Others were left out by this rank after it had released
// the unit elsewhere.
bool AgreedOrder::is_kept(LeaseEvent event, int occurrence) {
  const auto unit = static_cast<std::size_t>(event.unit);
  if (event.act == LeaseAct::kRelease) return std::exchange(is_leased_[unit], std::uint8_t{0}) != 0;
  const bool is_kept = was_used(event, occurrence);
  if (event.act == LeaseAct::kLease && is_kept) is_leased_[unit] = 1;
  return is_kept;
}

bool AgreedOrder::was_used(LeaseEvent event, int occurrence) const {
  const std::uint8_t used = uses_[use_index(event)];
  if (used == 0) return true;  // a unit that nobody used keeps its places: a rank may use it again
  return (used & use_bit(occurrence)) != 0;
}

// Earlier micro-batches may have used a unit in places that the last one does not have: of those
// that it has, nobody used any.
void AgreedOrder::forget_uses_beyond_log() {
  for (int unit = 0; unit < static_cast<int>(is_leased_.size()); ++unit) {
    for (const LeaseAct act : {LeaseAct::kLease, LeaseAct::kClose}) {
      std::uint8_t& used = uses_[use_index({act, unit})];
      const unsigned in_log = (1U << std::min<int>(count({act, unit}), 8)) - 1;
      if ((used & in_log) == 0) used = 0;
    }
  }
}

void AgreedOrder::adopt() {
  forget_uses_beyond_log();
  next_.clear();
  std::fill(counts_.begin(), counts_.end(), std::uint8_t{0});
  std::fill(is_leased_.begin(), is_leased_.end(), std::uint8_t{0});
  for (const LeaseEvent event : done_) {
    std::uint8_t& occurrence = count(event);
    if (is_kept(event, occurrence)) next_.push_back(event);
    if (occurrence < 255) ++occurrence;
  }
  order_.swap(next_);
  forget();
}

void AgreedOrder::forget() {
  std::fill(uses_.begin(), uses_.end(), std::uint8_t{0});
}

}  // namespace sifr
