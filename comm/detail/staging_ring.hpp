#pragma once

#include "comm/detail/peer_memory.hpp"
#include "comm/detail/rounds.hpp"

#include <cstdint>

namespace sifr::detail {

/// How tensors reach peers that cannot read them in place: piece by piece through two halves of
/// shared memory for each rank. Every rank counts the same pieces, whether it fills its half or
/// only empties the others'.
///
///   begin_piece (waits until all have emptied this half) → fill → publish → wait_for the others' →
///   read → release
class StagingRing {
 public:
  static constexpr std::int64_t kHalfBytes = std::int64_t{4} << 20;

  /// Elements in a piece, when a half holds `slots` stretches of that length.
  [[nodiscard]] static std::int64_t piece_count(int slots, DType dtype) noexcept {
    return kHalfBytes / (slots * size_of(dtype));
  }

  /// Every rank makes its ring in the same collective.
  StagingRing(const Rounds& rounds, PeerMemory& memory, const Call& call);

  [[nodiscard]] std::byte* begin_piece(const Call& call);
  void publish();
  void wait_for(int peer, const Call& call) const;
  /// A peer's half, once wait_for has returned.
  [[nodiscard]] const std::byte* piece_of(int peer) const;
  void release();

 private:
  [[nodiscard]] std::int64_t half() const noexcept { return piece_ % 2 * kHalfBytes; }

  const Rounds& rounds_;
  const PeerMemory& memory_;
  SharedBuffer buffer_;
  std::uint32_t piece_ = 0;  // pieces before this one
};

}  // namespace sifr::detail
