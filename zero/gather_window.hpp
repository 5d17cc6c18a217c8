#pragma once

#include "../comm/communicator.hpp"
#include "./agreed_order.hpp"
#include "./layout.hpp"
#include "./memory_plan.hpp"
#include "./options.hpp"
#include "./weight_store.hpp"

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace sifr {

/// The memory in which units are whole for a while: stage 3, and in debug mode every stage.
///
///   absent --gather--> resident, held --release--> resident, free --space or limit asks--> absent
///
/// What is gathered, kept and dropped follows from the options and from the leases so far, never
/// from time or completion: every rank makes the same gathers. A free unit stays until its memory
/// is asked for, farthest next use first. Where the window cannot hold all units, a release is one
/// of the leases that all ranks must make in the same places: a rank that left some units out, and
/// meanwhile held others for longer, would drop other ones, and end the group.
///
/// In debug mode every unit has a place of its own, which holds NaNs unless the unit is held, so
/// that a pointer from an ended lease cannot read what looks like weights. Nothing is prefetched
/// and nothing persists; below stage 3 a gather is a copy of the whole that the rank has.
class GatherWindow {
 public:
  GatherWindow(const Layout& layout,
               const ZeroOptions& options,
               const WeightStore& store,
               Communicator& communicator,
               Stream& stream,
               std::int64_t bytes);
  ~GatherWindow();
  GatherWindow(const GatherWindow&) = delete;
  GatherWindow& operator=(const GatherWindow&) = delete;

  /// The unit is whole, or on its way, and stays until release. `ahead`: the order from here on.
  /// Throws OutOfMemory, naming the units, if held ones leave no room.
  void hold(int unit, std::span<const LeaseEvent> ahead);
  void release(int unit, std::span<const LeaseEvent> ahead);
  /// Debug: a held unit that nobody may read until it is released reads as NaN.
  void hide(int unit) noexcept;
  /// Gathers what comes next, until a unit crosses the prefetch limit or the next one the live
  /// limit: one unit at least, however large, where the live limit permits.
  void prefetch(std::span<const LeaseEvent> ahead);
  /// A held unit's whole weights; waits for the gather.
  [[nodiscard]] const std::byte* whole(int unit);
  /// Whether no unit ever has to make room for another.
  [[nodiscard]] bool holds_all() const noexcept;
  /// The shards have changed: drops every unit (none is held) and gathers the persistent ones anew.
  /// Collective.
  void refresh();

 private:
  struct Resident {
    std::int64_t offset = 0;
    bool is_resident = false;
    bool is_held = false;
    Event gathered = {};
    std::vector<GatherPart> parts = {};
  };
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t kNow = -1;

  [[nodiscard]] static std::int64_t next_use(int unit, std::span<const LeaseEvent> ahead) noexcept;
  [[nodiscard]] bool is_far(int unit, std::span<const LeaseEvent> ahead) const;
  bool make_room(int unit, std::span<const LeaseEvent> ahead, std::int64_t use);
  [[nodiscard]] int farthest(std::span<const LeaseEvent> ahead, std::int64_t beyond) const;
  [[nodiscard]] std::int64_t find_gap(std::int64_t bytes) const;
  [[nodiscard]] std::int64_t find_place(int unit) const;
  void gather(int unit, std::int64_t offset);
  void fetch(int unit);
  void drop(int unit);
  void poison(int unit);
  [[noreturn]] void throw_full(int unit) const;
  [[nodiscard]] Resident& at(int unit) { return units_[static_cast<std::size_t>(unit)]; }
  [[nodiscard]] const Resident& at(int unit) const {
    return units_[static_cast<std::size_t>(unit)];
  }

  const Layout& layout_;
  const ZeroOptions& options_;
  const WeightStore& store_;
  Communicator& communicator_;
  Stream& stream_;
  Buffer memory_;
  std::vector<bool> is_persistent_;
  std::vector<Resident> units_;
  std::vector<int> by_offset_;  // resident units in order of their place
  std::int64_t live_ = 0;       // elements of resident units
};

}  // namespace sifr
