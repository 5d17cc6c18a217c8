#pragma once

#include "../comm/communicator.hpp"
#include "./layout.hpp"
#include "./memory_plan.hpp"
#include "./options.hpp"

#include <cstddef>
#include <vector>

namespace sifr {

/// Where gradients lie between their opening and the end of their reduction.
///
///   absent --open--> open --close--> pending (in a bucket) --retire--> in flight --done-->
///   absent
///
/// Stages 0 and 1: a place for every unit. Stages 2 and 3: a ring for units with one gradient
/// lease, places for the rest. A place is taken after the last one taken, around the ring, whatever
/// is in flight there: its end is waited for. While a unit is open either neighbour fits beside it,
/// so that the two can be open together: a place in the middle that is in the way of that is passed
/// over. So where places lie follows from the order of openings and closings alone, on every rank
/// alike.
class GradientMemory {
 public:
  GradientMemory(const Layout& layout,
                 const ZeroOptions& options,
                 const MemoryPlan& plan,
                 Communicator& communicator);

  /// Takes a place for a unit that has none open; its content is undefined. False: pending
  /// gradients are in the way, and must be reduced first. Where open ones leave no room the unit
  /// has no place, as long as nobody needs it: zeros need none.
  [[nodiscard]] bool open(int unit);
  /// Throws OutOfMemory, naming the units that are open, if the unit found no place.
  void require_place(int unit) const;
  [[nodiscard]] std::byte* at(int unit) const;
  [[nodiscard]] View segment(int unit, int segment) const;
  void close(int unit);
  /// The unit's place is free once `stream` has done what is enqueued on it so far: the reduction.
  /// Debug: then it is poisoned first.
  void retire(int unit, Stream& stream);
  /// Waits for what is in flight.
  void wait() const;
  /// Nothing is open, pending or in flight any more; waits for what is.
  void clear();
  /// Bytes of the ring; 0 at stages 0 and 1.
  [[nodiscard]] std::int64_t ring_bytes() const noexcept { return ring_bytes_; }

 private:
  static constexpr std::int64_t kNowhere = -1;
  enum class State : std::uint8_t { kOpen, kPending, kInFlight };
  struct Block {
    int unit = 0;
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    State state = State::kOpen;
    Event done = {};
  };
  [[nodiscard]] View bytes_at(std::int64_t offset, std::int64_t bytes) const;
  [[nodiscard]] bool open_fixed(int unit);
  [[nodiscard]] bool is_blocked(std::int64_t offset, std::int64_t bytes) const;
  void measure_neighbours();
  [[nodiscard]] std::int64_t find_place(std::int64_t bytes, std::int64_t beside) const;
  void take(int unit, std::int64_t offset, std::int64_t bytes);
  [[nodiscard]] bool has_pending() const;

  const Layout& layout_;
  Communicator& communicator_;
  bool poisons_;
  std::int64_t ring_bytes_;
  SharedBuffer memory_;
  std::vector<std::int64_t> fixed_;      // [unit]: place outside the ring, or -1
  std::vector<std::int64_t> neighbour_;  // [unit]: bytes of the larger neighbour in the ring
  std::vector<std::int64_t> current_;    // [unit]: latest place, or kNowhere
  std::vector<Block> blocks_;            // oldest first
  std::int64_t head_ = 0;                // end of the latest place in the ring
};

}  // namespace sifr
