#pragma once

#include "../comm/communicator.hpp"
#include "./agreed_order.hpp"
#include "./gather_window.hpp"
#include "./gradient_memory.hpp"
#include "./layout.hpp"
#include "./reducer.hpp"
#include "./weight_store.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sifr {

/// Turns one rank's leases into the group's one sequence of collectives: leases move the agreed
/// order, the order drives the gather window and the reducer. The rules are the same at every
/// stage; below stage 3 a gather moves nothing.
///
/// Ends of leases are only noted (they come from destructors) and take effect at the next call.
class Coordinator {
 public:
  /// `window` is null below stage 3, unless in debug mode; `is_training` false: only weights
  /// leases, no gradients (evaluation).
  struct Parts {
    const WeightStore* store = nullptr;
    GatherWindow* window = nullptr;
    GradientMemory* gradients = nullptr;
    Reducer* reducer = nullptr;
  };
  Coordinator(const Layout& layout,
              const Parts& parts,
              Communicator& communicator,
              bool is_training);

  /// The unit's whole weights, valid until as many releases.
  [[nodiscard]] const std::byte* lease_weights(int unit);
  void release_weights(int unit) noexcept;
  /// The unit's gradient buffer. `is_first`: of the micro-batch, and zeroed. The unit closes with
  /// its last declared lease.
  struct Opened {
    std::byte* data = nullptr;
    bool is_first = false;
  };
  [[nodiscard]] Opened open_gradients(int unit);
  void close_gradients(int unit) noexcept;
  /// The lease ends without its gradient; what follows is abandon_micro_batch, or the group's end.
  void abandon_gradients(int unit) noexcept;

  [[nodiscard]] int gradient_leases(int unit) const { return at(unit).gradient_leases; }
  /// The units of which this rank took gradients leases in the micro-batch that ended last, but
  /// fewer than declared.
  [[nodiscard]] std::span<const int> short_units() const noexcept { return short_units_; }
  /// Whether in this micro-batch weights leases of several units overlapped, or one ended elsewhere
  /// than in the order: then the gather window depends on where the other ranks' leases end.
  [[nodiscard]] bool depends_on_ends() const noexcept { return depends_on_ends_; }
  /// A unit on which a lease is open, or -1.
  [[nodiscard]] int open_unit() const noexcept;

  void begin_micro_batch();
  /// Takes effect of what was noted, closes what is unclosed, takes part in what this rank left
  /// out, and waits.
  void end_micro_batch();
  /// Forgets the micro-batch: no collective is made. For a group of one after an exception, when no
  /// lease is open any more.
  void abandon_micro_batch();
  [[nodiscard]] AgreedOrder& order() noexcept { return order_; }

 private:
  struct UnitState {
    int weight_leases = 0;   // open now
    int noted_releases = 0;  // ended, not yet taken into account
    bool holds_window = false;
    int gradient_leases = 0;  // begun in this micro-batch
    int open_gradients = 0;   // open now
    int noted_closings = 0;   // ended, not yet taken into account
    bool is_open = false;     // gradient memory is taken
    bool is_started = false;  // this rank began a gradients lease and has not closed the unit
  };
  void prepare_lease();
  void take_effect();
  void end_lease(LeaseEvent event);
  bool leave_out(LeaseEvent event);
  void gather(int unit);
  void let_go(int unit);
  void open(int unit);
  void close(int unit, bool contributes);
  void reach(LeaseEvent event);
  [[nodiscard]] UnitState& at(int unit) { return units_[static_cast<std::size_t>(unit)]; }
  [[nodiscard]] const UnitState& at(int unit) const {
    return units_[static_cast<std::size_t>(unit)];
  }

  const Layout& layout_;
  Parts parts_;
  Communicator& communicator_;
  AgreedOrder order_;
  std::vector<UnitState> units_;
  std::vector<LeaseEvent> noted_;  // ends of leases, in order; room for one more a lease
  std::size_t open_leases_ = 0;
  int leased_units_ = 0;  // with weights leases
  bool depends_on_ends_ = false;
  std::vector<int> short_units_;
};

}  // namespace sifr
