#include "engine/detail/roll_call.hpp"

#include "device/detail/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace sifr::detail {

namespace {

using Events = std::vector<LeaseEvent>;

constexpr int kNoUnit = -1;  // fills up the shorter sequences of an exchange

// What the hash covers: releases move nothing.
Events without_releases(std::span<const LeaseEvent> done) {
  Events events(done.begin(), done.end());
  std::erase_if(events, [](LeaseEvent event) { return event.act == LeaseAct::kRelease; });
  return events;
}

// What both ranks do: a unit that one of them leaves out parts nobody.
Events in_common(const Events& own, const Events& other) {
  Events common = own;
  std::erase_if(common, [&](LeaseEvent event) {
    return std::find(other.begin(), other.end(), event) == other.end();
  });
  return common;
}

// "rank 0 leases weights of 'a' where rank 1 opens gradients of 'b'", at the first place at which
// two sequences differ; empty if they are equal.
std::string first_difference(const Events& first,
                             const Events& other,
                             std::size_t rank,
                             const Layout& layout) {
  const auto [one, two] = std::mismatch(first.begin(), first.end(), other.begin(), other.end());
  if (one == first.end() && two == other.end()) return {};
  const auto told = [&layout](auto place, const Events& events) {
    if (place == events.end()) return std::string("is at its end");
    return fmt::format("{} '{}'", name_of(place->act), layout.unit(place->unit).name);
  };
  return fmt::format("rank 0 {} where rank {} {}", told(one, first), rank, told(two, other));
}

}  // namespace

RollCall::RollCall(const Layout& layout, Communicator& communicator)
    : layout_(layout),
      communicator_(communicator),
      mine_(sizeof(RollCallEntry) + 2 * static_cast<std::size_t>(layout.unit_count())),
      all_(mine_.size() * static_cast<std::size_t>(communicator.size())),
      entries_(static_cast<std::size_t>(communicator.size())) {}

std::span<const RollCallEntry> RollCall::meet(const Occasion& occasion,
                                              RollCallEntry own,
                                              AgreedOrder& order) {
  own.order_hash = order.hash();
  own.events = static_cast<std::int64_t>(order.done().size());
  std::memcpy(mine_.data(), &own, sizeof(own));
  std::memcpy(mine_.data() + sizeof(own), order.uses().data(), order.uses().size());
  communicator_.exchange(mine_, all_, {occasion.call});
  for (std::size_t r = 0; r < entries_.size(); ++r) {
    const std::byte* entry = all_.data() + r * mine_.size();
    std::memcpy(&entries_[r], entry, sizeof(own));
    order.merge_uses(
        {reinterpret_cast<const std::uint8_t*>(entry + sizeof(own)), order.uses().size()});
  }
  compare_orders(occasion, order);
  compare_arguments();
  return entries_;
}

// Every rank finds the same difference.
void RollCall::compare_orders(const Occasion& occasion, const AgreedOrder& order) {
  const auto other = std::find_if(entries_.begin(), entries_.end(), [this](const auto& entry) {
    return entry.order_hash != entries_.front().order_hash;
  });
  if (other == entries_.end()) return;
  const auto rank = static_cast<std::size_t>(other - entries_.begin());
  const std::vector<Events> own = gather(order.own());
  const std::vector<Events> done = gather(without_releases(order.done()));
  const std::string cause =
      first_difference(in_common(own[0], own[rank]), in_common(own[rank], own[0]), rank, layout_);
  const std::string effect = first_difference(done[0], done[rank], rank, layout_);
  throw CommError(
      fmt::format("ranks took units in different orders in step {}, micro-batch {}: {}{}their "
                  "collectives part where {} ({})",
                  occasion.step,
                  occasion.micro_batch,
                  cause,
                  cause.empty() ? "" : "; ",
                  effect,
                  occasion.call),
      static_cast<int>(rank));
}

// Every rank's sequence.
std::vector<std::vector<LeaseEvent>> RollCall::gather(std::span<const LeaseEvent> mine) {
  std::size_t longest = 0;
  for (const RollCallEntry& entry : entries_)
    longest = std::max(longest, static_cast<std::size_t>(entry.events));
  Events padded(mine.begin(), mine.end());
  padded.resize(longest, {LeaseAct::kLease, kNoUnit});
  Events all(longest * entries_.size());
  communicator_.exchange(std::as_bytes(std::span(padded)),
                         std::as_writable_bytes(std::span(all)),
                         {"roll call: orders"});
  std::vector<Events> sequences;
  for (std::size_t r = 0; r < entries_.size(); ++r) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(r * longest);
    sequences.emplace_back(first, first + static_cast<std::ptrdiff_t>(longest));
    std::erase_if(sequences.back(), [](LeaseEvent event) { return event.unit == kNoUnit; });
  }
  return sequences;
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
