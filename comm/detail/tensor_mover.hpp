#pragma once

#include "comm/detail/peer_memory.hpp"
#include "comm/detail/rounds.hpp"
#include "comm/detail/staging_ring.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

namespace sifr::detail {

/// One rank's part of a collective, view by view: describes what it offers, and reads what its
/// peers offer. `index` is a view's place in the round.
class TensorMover {
 public:
  TensorMover(Device& device, const Rounds& rounds, PeerMemory& memory);

  [[nodiscard]] Entry entry_for(const ReducePart& part) const;
  [[nodiscard]] Entry entry_for(const GatherPart& part) const;
  /// Of a broadcast: only the root offers anything.
  [[nodiscard]] Entry entry_for(const View& view, bool is_root) const;

  /// Before a collective's views: it gives this rank `bytes` in all.
  void begin(std::int64_t bytes) noexcept;
  void reduce(const ReducePart& part, std::size_t index, const Call& call);
  void gather(const GatherPart& part, std::size_t index, const Call& call);
  void receive(const View& view, int root, std::size_t index, const Call& call);
  void count_collective() noexcept { ++counts_.collectives; }

  [[nodiscard]] Communicator::Traffic traffic() const noexcept;

 private:
  /// Elements [first, first + count) of what each rank hands to each reader.
  struct Piece {
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  /// Where this rank finds its share in a peer's tensor, in elements, and in a staged piece, in
  /// stretches.
  struct Share {
    std::int64_t skip = 0;
    int slot = 0;
  };

  template <class Fill, class Use>
  void in_pieces(std::size_t index, int slots, const Call& call, const Fill& fill, const Use& use);
  void reduce_piece(const ReducePart& part, std::size_t index, Piece piece);
  [[nodiscard]] Place place_of(ConstView view) const;
  [[nodiscard]] const Entry& entry(int rank, std::size_t index) const noexcept;
  [[nodiscard]] bool is_staged(std::size_t index) const noexcept;
  [[nodiscard]] DType dtype_of(std::size_t index) const noexcept;
  [[nodiscard]] ConstView peer_view(int peer, std::size_t index, Share share, Piece piece) const;
  void copy(ConstView from, View to);
  void stage(ConstView from, std::byte* to);

  Device& device_;
  const Rounds& rounds_;
  PeerMemory& memory_;
  std::optional<StagingRing> ring_;  // made when a tensor needs it
  std::vector<ConstView>
      inputs_;  // one for each rank; kept, so that a steady state allocates nothing
  bool is_large_ = false;
  Stream inline_;  // runs kernels on the thread that runs the collective

  struct Counts {
    std::atomic<std::int64_t> reduced{0}, gathered{0}, staged{0}, collectives{0};
  };
  Counts counts_;
};

}  // namespace sifr::detail
