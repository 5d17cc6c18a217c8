#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sifr {

/// What a rank does with a unit: weights become leased, are released, gradients are opened, are
/// closed (complete).
enum class LeaseAct : std::uint8_t { kLease, kRelease, kOpen, kClose };
/// For messages, before a unit's name: "leases weights of".
[[nodiscard]] std::string_view name_of(LeaseAct act) noexcept;
struct LeaseEvent {
  LeaseAct act = LeaseAct::kLease;
  int unit = 0;
  friend bool operator==(const LeaseEvent&, const LeaseEvent&) = default;
};

/// The order of one micro-batch on which all ranks agree, and this rank's place in it.
///
/// Each event of a rank moves its cursor forward to that event. Those in between are *left out* by
/// this rank: it takes part in their collectives all the same, so that every rank makes one
/// sequence of collectives. (`left_out` may refuse one, which then comes later, as an extra.) An
/// event that does not lie ahead is an *extra*, which every rank must make at the same place; a
/// release never skips. What was done is logged; equal logs (compare `hash`) mean equal sequences.
/// At the end of a step the log, less what no rank used, becomes the order of the next one. The
/// first order is the declaration's, forward and back.
class AgreedOrder {
 public:
  /// `first` is the order before anything was recorded.
  AgreedOrder(int units, std::vector<LeaseEvent> first);

  /// Starts a micro-batch.
  void begin();

  /// This rank does `event`: calls left_out(event) for those between, in order, and logs
  /// everything.
  template <class F>
  void reach(LeaseEvent event, F&& left_out) {
    const std::size_t place = find(event);
    note_departure(event, place);
    if (place != kNowhere) {
      while (cursor_ < place)
        skip(left_out);
      ++cursor_;
    }
    log(event, true);
  }

  /// Ends a micro-batch: what still lies ahead is left out.
  template <class F>
  void finish(F&& left_out) {
    while (cursor_ < order_.size())
      skip(left_out);
  }

  /// What lies ahead of this rank, nearest first.
  [[nodiscard]] std::span<const LeaseEvent> ahead() const noexcept {
    return std::span(order_).subspan(cursor_);
  }
  /// What this micro-batch did so far on this rank, left-out events included.
  [[nodiscard]] std::span<const LeaseEvent> done() const noexcept { return done_; }
  /// Of `done`, releases left out: they move no bytes.
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  /// What this rank itself did so far in this micro-batch, without releases.
  [[nodiscard]] std::span<const LeaseEvent> own() const noexcept { return own_; }
  /// Where this rank first did something else in this micro-batch than the order says.
  struct Departure {
    LeaseEvent made;
    std::optional<LeaseEvent> expected;  // nothing: the order was at its end
  };
  [[nodiscard]] const std::optional<Departure>& departure() const noexcept { return departure_; }

  /// Which occurrences of a unit's leases and closings this rank itself made in this step: bit k of
  /// byte 2·unit for the k-th lease of a micro-batch, of byte 2·unit + 1 for the k-th closing (bit
  /// 7: the eighth and later).
  [[nodiscard]] std::span<const std::uint8_t> uses() const noexcept { return uses_; }
  /// Whether some rank closed the unit's gradients in this step; after merge_uses.
  [[nodiscard]] bool is_closed_by_some(int unit) const {
    return uses_[static_cast<std::size_t>(unit) * 2 + 1] != 0;
  }
  /// Adds another rank's uses.
  void merge_uses(std::span<const std::uint8_t> uses);
  /// At the end of a step: the last micro-batch's log becomes the order, without events that no
  /// rank used in the step. Each unit keeps a place.
  void adopt();
  /// At the end of a step that was cut short: the order stays as it was.
  void forget();

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  [[nodiscard]] std::size_t find(LeaseEvent event) const noexcept;
  void note_departure(LeaseEvent event, std::size_t place) noexcept;
  template <class F>
  void skip(F& left_out) {
    const LeaseEvent event = order_[cursor_++];
    if (left_out(event)) log(event, false);
  }
  void log(LeaseEvent event, bool used);
  [[nodiscard]] std::uint8_t& count(LeaseEvent event);
  [[nodiscard]] bool is_kept(LeaseEvent event, int occurrence);
  [[nodiscard]] bool was_used(LeaseEvent event, int occurrence) const;
  void forget_uses_beyond_log();

  std::vector<LeaseEvent> order_;
  std::vector<LeaseEvent> done_;
  std::vector<LeaseEvent> own_;
  std::optional<Departure> departure_;
  std::vector<LeaseEvent> next_;  // scratch of adopt
  std::size_t cursor_ = 0;
  std::uint64_t hash_ = 0;
  std::vector<std::uint8_t> uses_;       // [unit][lease, closing]
  std::vector<std::uint8_t> counts_;     // occurrences in this micro-batch: [unit][act]
  std::vector<std::uint8_t> is_leased_;  // [unit], scratch of adopt
};

}  // namespace sifr
