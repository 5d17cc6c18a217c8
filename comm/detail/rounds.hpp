#pragma once

#include "comm/detail/control_block.hpp"
#include "comm/detail/waiting.hpp"

#include <cstdint>
#include <string_view>
#include <utility>

namespace sifr::detail {

/// The protocol around every collective of one rank; one thread at a time.
///
///   fill draft() → ready(n) → all ready(n)? → compare → read what the peers offer → done(n) → all
///   done(n)?
///
/// A rank fills its draft for n + 1 only after all are done with n, so one descriptor for each rank
/// is enough.
class Rounds {
 public:
  /// `quiet`: see PeerMemory::is_owned_by_peers.
  Rounds(ControlBlock control, int rank, const GroupOptions& options, bool quiet);

  /// This rank's next descriptor: all but sequence and tag. Throws if the group has failed.
  [[nodiscard]] Descriptor& draft();

  /// Posts the draft, and calls `move(call)` once every rank has posted the same; returns when all
  /// ranks have moved. Whatever goes wrong here or there ends the group, and is thrown.
  template <class Move>
  void run(Call call, const Move& move) {
    post(call);
    try {
      meet(call);
      begin_reading();
      move(std::as_const(call));
      finish(call);
    } catch (...) {
      give_up();
      throw;
    }
  }

  /// Ends the group unless it has ended: "rank R failed: text".
  void fail(std::string_view text) const noexcept;
  void check() const;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return control_.size(); }
  [[nodiscard]] const Waiting& waiting() const noexcept { return waiting_; }
  [[nodiscard]] const ControlBlock& control() const noexcept { return control_; }
  [[nodiscard]] RankBlock& block(int rank) const noexcept { return control_.rank(rank); }
  [[nodiscard]] RankBlock& own() const noexcept { return control_.rank(rank_); }

 private:
  void post(Call& call);
  void meet(const Call& call) const;
  void compare(const Call& call) const;
  void begin_reading() const;
  void finish(const Call& call) const;
  void give_up() const noexcept;
  void wait_until_unread() const noexcept;

  ControlBlock control_;
  int rank_;
  bool quiet_;
  Waiting waiting_;
  std::uint32_t sequence_ = 0;  // of the last round that this rank posted
};

}  // namespace sifr::detail
