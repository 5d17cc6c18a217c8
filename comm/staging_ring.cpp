#include "comm/detail/staging_ring.hpp"

namespace sifr::detail {

StagingRing::StagingRing(const Rounds& rounds, PeerMemory& memory, const Call& call)
    : rounds_(rounds),
      memory_(memory),
      buffer_(memory.allocate(2 * kHalfBytes, Purpose::kStaging, call)) {}

std::byte* StagingRing::begin_piece(const Call& call) {
  // This half held the piece before the last one.
  rounds_.waiting().wait_for_all(&RankBlock::drained, piece_ - 1, call);
  return buffer_.data() + half();
}

void StagingRing::publish() {
  rounds_.own().filled.publish(piece_ + 1);
}

void StagingRing::wait_for(int peer, const Call& call) const {
  rounds_.waiting().wait_for(peer, &RankBlock::filled, piece_ + 1, call);
}

const std::byte* StagingRing::piece_of(int peer) const {
  // The ranks' rings come from the same call of allocate, so they lie at the same place.
  Place place = memory_.place_of(buffer_.data(), buffer_.bytes());
  place.offset += half();
  return memory_.find(peer, place, kHalfBytes);
}

void StagingRing::release() {
  rounds_.own().drained.publish(++piece_);
}

}  // namespace sifr::detail
