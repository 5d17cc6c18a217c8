#include "engine/detail/roll_call.hpp"

#include "device/detail/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace sifr::detail {

namespace {

std::string describe(LeaseEvent event, const Layout& layout) {
  constexpr const char* kActs[] = {
      "leases weights of", "releases weights of", "opens gradients of", "closes gradients of"};
  if (event.unit < 0) return "is at its end";
  return fmt::format(
      "{} '{}'", kActs[static_cast<std::size_t>(event.act)], layout.unit(event.unit).name);
}

// What the hash covers: releases move nothing.
std::vector<LeaseEvent> compared(std::span<const LeaseEvent> done) {
  std::vector<LeaseEvent> events(done.begin(), done.end());
  std::erase_if(events, [](LeaseEvent event) { return event.act == LeaseAct::kRelease; });
  return events;
}

}  // namespace

RollCall::RollCall(const Layout& layout, Communicator& communicator)
    : layout_(layout),
      communicator_(communicator),
      mine_(sizeof(RollCallEntry) + 2 * static_cast<std::size_t>(layout.unit_count())),
      all_(mine_.size() * static_cast<std::size_t>(communicator.size())),
      entries_(static_cast<std::size_t>(communicator.size())) {}

std::span<const RollCallEntry> RollCall::meet(std::string_view occasion,
                                              RollCallEntry own,
                                              AgreedOrder& order) {
  own.order_hash = order.hash();
  own.events = static_cast<std::int64_t>(order.done().size());
  std::memcpy(mine_.data(), &own, sizeof(own));
  std::memcpy(mine_.data() + sizeof(own), order.uses().data(), order.uses().size());
  communicator_.exchange(mine_, all_, {occasion});
  for (std::size_t r = 0; r < entries_.size(); ++r) {
    const std::byte* entry = all_.data() + r * mine_.size();
    std::memcpy(&entries_[r], entry, sizeof(own));
    order.merge_uses(
        {reinterpret_cast<const std::uint8_t*>(entry + sizeof(own)), order.uses().size()});
  }
  compare_orders(order);
  compare_arguments();
  return entries_;
}

void RollCall::compare_orders(const AgreedOrder& order) {
  const bool is_equal =
      std::all_of(entries_.begin(), entries_.end(), [&](const RollCallEntry& entry) {
        return entry.order_hash == entries_.front().order_hash;
      });
  if (is_equal) return;
  std::size_t longest = 0;
  for (const RollCallEntry& entry : entries_)
    longest = std::max(longest, static_cast<std::size_t>(entry.events));
  std::vector<LeaseEvent> mine = compared(order.done());
  mine.resize(longest + 1, {LeaseAct::kLease, -1});
  std::vector<LeaseEvent> all(mine.size() * entries_.size());
  communicator_.exchange(std::as_bytes(std::span(mine)),
                         std::as_writable_bytes(std::span(all)),
                         {"roll call: orders"});
  for (std::size_t i = 0; i < mine.size(); ++i) {
    for (std::size_t r = 1; r < entries_.size(); ++r) {
      const LeaseEvent first = all[i];
      const LeaseEvent other = all[r * mine.size() + i];
      if (first == other) continue;
      throw CommError(fmt::format("ranks took units in different orders in one micro-batch: at "
                                  "place {} rank 0 {}, rank {} {}",
                                  i,
                                  describe(first, layout_),
                                  r,
                                  describe(other, layout_)),
                      static_cast<int>(r));
    }
  }
}

void RollCall::compare_arguments() const {
  const RollCallEntry& first = entries_.front();
  for (std::size_t r = 1; r < entries_.size(); ++r) {
    const RollCallEntry& other = entries_[r];
    SIFR_REQUIRE(UsageError,
                 first.is_boundary == other.is_boundary,
                 "step(): boundary is {} on rank 0 and {} on rank {}",
                 first.is_boundary,
                 other.is_boundary,
                 r);
    SIFR_REQUIRE(UsageError,
                 first.has_lr == other.has_lr && first.lr == other.lr,
                 "step(): lr is {} on rank 0 and {} on rank {}",
                 first.lr,
                 other.lr,
                 r);
  }
}

}  // namespace sifr::detail
