#pragma once

#include "comm/detail/control_block.hpp"
#include "comm/group.hpp"

#include <chrono>
#include <cstdint>
#include <string_view>

namespace sifr::detail {

/// Longer is as good as for ever, and would overflow the clock.
inline constexpr std::chrono::milliseconds kLongestTimeout = std::chrono::hours(24 * 3650);

/// The collective that a rank is in.
struct Call {
  Operation operation = Operation::kExchange;
  std::string_view tag = {};
  std::chrono::milliseconds timeout = {};
  std::uint32_t sequence = 0;
};

/// How one rank waits for the others: a look, a short spin where the rank has a core of its own,
/// then sleeps of at most 50 ms, each followed by a look at the abort page, at who has left, and at
/// the clock.
class Waiting {
 public:
  using Which = Counter RankBlock::*;

  Waiting(ControlBlock control, int rank, const GroupOptions& options);

  /// Returns once that counter of `peer` has reached `target`. Throws CommError when the group has
  /// failed or the peer has left, CommTimeout at the call's deadline; the cause is on the abort
  /// page then.
  void wait_for(int peer, Which which, std::uint32_t target, const Call& call) const;
  /// The same for every other rank; the deadline is common.
  void wait_for_all(Which which, std::uint32_t target, const Call& call) const;

 private:
  struct Clock;
  bool spin(const Counter& counter, std::uint32_t target) const noexcept;
  void wait_until(
      int peer, Which which, std::uint32_t target, const Call& call, Clock& clock) const;
  void report(Which which,
              std::uint32_t target,
              const Call& call,
              std::chrono::milliseconds waited) const;
  [[noreturn]] void give_up(Which which, std::uint32_t target, const Call& call) const;
  [[noreturn]] void fail_because_left(int peer, const Call& call) const;
  [[nodiscard]] std::string missing(Which which, std::uint32_t target) const;

  ControlBlock control_;
  int rank_;
  std::chrono::milliseconds report_after_;
  Log log_;
  bool may_spin_;
};

}  // namespace sifr::detail
