#include "comm/detail/tensor_mover.hpp"

#include "comm/detail/sum_with_zeros.hpp"
#include "device/copy_past_caches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace sifr::detail {
namespace {

constexpr std::int64_t kCopyGrain = 1 << 20;  // bytes

// From this many bytes on, what a collective gives a rank is written past the caches: a
// reduce-scatter of 8 MiB then takes 0.7 of the time, larger ones and all-gathers 0.5 to 0.7.
// Smaller results take as long or longer.
constexpr std::int64_t kLargeResult = std::int64_t{4} << 20;

}  // namespace

TensorMover::TensorMover(Device& device, const Rounds& rounds, PeerMemory& memory)
    : device_(device),
      rounds_(rounds),
      memory_(memory),
      inputs_(static_cast<std::size_t>(rounds.size())),
      inline_(Stream::caller(&device.pool())) {}

void TensorMover::begin(std::int64_t bytes) noexcept {
  is_large_ = bytes >= kLargeResult;
}

Communicator::Traffic TensorMover::traffic() const noexcept {
  return {counts_.reduced, counts_.gathered, counts_.staged, counts_.collectives};
}

Place TensorMover::place_of(ConstView view) const {
  return view.count == 0 ? Place{Place::kAddress, 0} : memory_.place_of(view.data, view.bytes());
}

Entry TensorMover::entry_for(const ReducePart& part) const {
  const bool is_zero = part.whole.count == 0 && part.slice_count > 0;
  return {is_zero ? Place{} : place_of(part.whole),
          part.whole.dtype,
          part.sum.count,
          part.slice_count,
          part.first};
}

Entry TensorMover::entry_for(const GatherPart& part) const {
  return {place_of(part.part), part.part.dtype, part.part.count, 0, 0};
}

Entry TensorMover::entry_for(const View& view, bool is_root) const {
  return {is_root ? place_of(view) : Place{Place::kAddress, 0}, view.dtype, view.count, 0, 0};
}

const Entry& TensorMover::entry(int rank, std::size_t index) const noexcept {
  return rounds_.block(rank).descriptor.entries[index];
}

bool TensorMover::is_staged(std::size_t index) const noexcept {
  for (int r = 0; r < rounds_.size(); ++r) {
    if (entry(r, index).place.allocation == Place::kStaged) return true;
  }
  return false;
}

DType TensorMover::dtype_of(std::size_t index) const noexcept {
  int r = 0;
  while (r + 1 < rounds_.size() && entry(r, index).place.allocation == Place::kNothing)
    ++r;
  return entry(r, index).dtype;
}

template <class Fill, class Use>
void TensorMover::in_pieces(
    std::size_t index, int slots, const Call& call, const Fill& fill, const Use& use) {
  const std::int64_t count = entry(rounds_.rank(), index).count;
  if (!is_staged(index)) return use(Piece{0, count});
  if (!ring_) ring_.emplace(rounds_, memory_, call);
  const std::int64_t longest = StagingRing::piece_count(slots, dtype_of(index));
  for (std::int64_t first = 0; first < count; first += longest) {
    const Piece piece = {first, std::min(longest, count - first)};
    if (entry(rounds_.rank(), index).place.allocation == Place::kStaged)
      fill(ring_->begin_piece(call), piece);
    ring_->publish();
    for (int r = 0; r < rounds_.size(); ++r) {
      if (r != rounds_.rank() && entry(r, index).place.allocation == Place::kStaged)
        ring_->wait_for(r, call);
    }
    use(piece);
    ring_->release();
  }
}

ConstView TensorMover::peer_view(int peer, std::size_t index, Share share, Piece piece) const {
  const Entry& offered = entry(peer, index);
  const std::int64_t element = size_of(offered.dtype);
  const std::int64_t bytes = piece.count * element;
  if (bytes == 0) return {nullptr, 0, offered.dtype};
  if (offered.place.allocation == Place::kStaged) {
    return {ring_->piece_of(peer) + share.slot * bytes, piece.count, offered.dtype};
  }
  const Place place = {offered.place.allocation,
                       offered.place.offset + (share.skip + piece.first) * element};
  const std::byte* data = memory_.find(peer, place, bytes);
  if (data == nullptr) {
    throw CommError(fmt::format("rank {} offers {} bytes at {} of its allocation {}, which rank {} "
                                "has freed or never had",
                                peer,
                                bytes,
                                place.offset,
                                place.allocation,
                                rounds_.rank()),
                    rounds_.rank());
  }
  return {data, piece.count, offered.dtype};
}

void TensorMover::reduce(const ReducePart& part, std::size_t index, const Call& call) {
  const auto fill = [&](std::byte* half, Piece piece) {
    for (int reader = 0; reader < rounds_.size(); ++reader) {
      const ConstView slice =
          part.whole.slice(reader * part.slice_count + part.first + piece.first, piece.count);
      if (reader != rounds_.rank()) stage(slice, half + reader * slice.bytes());
    }
  };
  if (part.sum.count == 0) return;
  in_pieces(
      index, rounds_.size(), call, fill, [&](Piece piece) { reduce_piece(part, index, piece); });
}

void TensorMover::reduce_piece(const ReducePart& part, std::size_t index, Piece piece) {
  const Share share = {rounds_.rank() * part.slice_count + part.first, rounds_.rank()};
  for (int r = 0; r < rounds_.size(); ++r) {
    ConstView& input = inputs_[static_cast<std::size_t>(r)];
    if (entry(r, index).place.allocation == Place::kNothing) {
      input = {};
    } else if (r == rounds_.rank()) {
      input = part.whole.slice(share.skip + piece.first, piece.count);
    } else {
      input = peer_view(r, index, share, piece);
    }
    counts_.reduced += input.bytes();
  }
  const auto write = is_large_ ? kernels::Into::kWritePastCaches : kernels::Into::kWrite;
  const auto into = part.accumulate ? kernels::Into::kAdd : write;
  sum_with_zeros(inputs_, part.sum.slice(piece.first, piece.count), into, inline_);
}

void TensorMover::gather(const GatherPart& part, std::size_t index, const Call& call) {
  const auto fill = [&](std::byte* half, Piece piece) {
    stage(part.part.slice(piece.first, piece.count), half);
  };
  in_pieces(index, 1, call, fill, [&](Piece piece) {
    for (int r = 0; r < rounds_.size(); ++r) {
      const ConstView from = r == rounds_.rank() ? part.part.slice(piece.first, piece.count)
                                                 : peer_view(r, index, {}, piece);
      copy(from, part.whole.slice(r * part.part.count + piece.first, piece.count));
    }
  });
}

void TensorMover::receive(const View& view, int root, std::size_t index, const Call& call) {
  const auto fill = [&](std::byte* half, Piece piece) {
    stage(view.slice(piece.first, piece.count), half);
  };
  in_pieces(index, 1, call, fill, [&](Piece piece) {
    if (rounds_.rank() != root)
      copy(peer_view(root, index, {}, piece), view.slice(piece.first, piece.count));
  });
}

void TensorMover::copy(ConstView from, View to) {
  if (from.data == to.data || to.count == 0) return;
  device_.pool().parallel_for(to.bytes(), kCopyGrain, [&](std::int64_t first, std::int64_t last) {
    const auto bytes = static_cast<std::size_t>(last - first);
    if (is_large_) {
      copy_past_caches(to.data + first, from.data + first, bytes);
    } else {
      std::memcpy(to.data + first, from.data + first, bytes);
    }
  });
  counts_.gathered += to.bytes();
}

void TensorMover::stage(ConstView from, std::byte* to) {
  std::memcpy(to, from.data, static_cast<std::size_t>(from.bytes()));
  counts_.staged += from.bytes();
}

}  // namespace sifr::detail
