#pragma once

#include "../device/device.hpp"
#include "../device/stream.hpp"
#include "../device/view.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sifr {

/// The group is dead: a rank failed, died, left, or made another call than the others. Every later
/// call on the group throws the same error; end the program or make a new group. `rank` is the rank
/// that the text calls the cause, or -1.
class SIFR_API CommError : public std::runtime_error, public Error {
 public:
  CommError(const std::string& text, int rank) : std::runtime_error(text), rank_(rank) {}
  [[nodiscard]] const char* message() const noexcept override { return what(); }
  [[nodiscard]] int rank() const noexcept { return rank_; }

 private:
  int rank_;
};

/// A rank stayed silent up to the deadline (`"sifr": {"comm_timeout": seconds}`).
class SIFR_API CommTimeout : public CommError {
 public:
  using CommError::CommError;
};

/// The ranks made different calls, or the same ones in different order.
class SIFR_API CallsDiffer : public CommError {
 public:
  using CommError::CommError;
};

/// What a collective is about, for comparison between the ranks and for messages. The text (a
/// unit's name, a phase) is compared byte by byte over its first 95 bytes; it must live until the
/// collective is complete.
struct Tag {
  std::string_view name = {};
};

/// One tensor of a reduce-scatter. `whole` has size() slices of `slice_count` elements each, one
/// for every rank; this collective reduces elements [first, first + sum.count) of every slice:
/// cutting a large tensor across its slices gives every rank a part of every piece. `sum` (fp32)
/// receives this rank's part. An empty `whole` (count 0) with `slice_count` > 0 stands for zeros:
/// this rank has nothing to add, and contributes zeros in its place in the order.
struct ReducePart {
  ConstView whole = {};
  std::int64_t slice_count = 0;
  std::int64_t first = 0;
  View sum = {};
  bool accumulate = false;  // false: sum = s; true: sum = sum + s
};

/// One tensor of an all-gather: whole.count == part.count · size(). `part` may be this rank's own
/// slot in `whole`.
struct GatherPart {
  ConstView part = {};
  View whole = {};
};

/// Memory that the peers of one host can read in place. Every rank's allocation of the same call
/// belongs together. Zeroed, resident, aligned to 4096 bytes, charged to the device's account.
using SharedBuffer = Buffer;

/// A fixed group of ranks. Every rank makes the same calls in the same order, one thread at a time.
///
/// Collectives are enqueued on `stream`: the group's own `stream()` (a worker) to overlap with
/// computing, or a caller stream to run now. The order is the order of the calls in both cases: a
/// call on another stream first waits for what is pending on the group's own. What a span names,
/// and the span itself, must live until the event is complete; memory that a collective reads must
/// not be written before that, since peers read it in place. Before a byte moves the ranks compare
/// (sequence number, operation, bytes, tag); a difference is a CommError that tells both sides. A
/// rank that dies, fails or is destroyed makes everybody's wait throw CommError naming the cause;
/// silence ends at the deadline. A group of one is an ordinary group.
class SIFR_API Communicator {
 public:
  Communicator() = default;
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] virtual int size() const noexcept = 0;
  [[nodiscard]] virtual Device& device() noexcept = 0;
  /// The communication stream: a worker of this rank.
  [[nodiscard]] virtual Stream& stream() noexcept = 0;

  /// Collective, blocking. Peers read such memory in place; other memory goes through a staging
  /// ring, in pieces, where the peers are other processes. The ranks' sizes may differ. Freeing it
  /// is collective in spirit: peers must have finished the collectives that read it, which they
  /// have once this rank's events are complete.
  [[nodiscard]] SharedBuffer allocate(std::int64_t bytes, Purpose purpose);

  /// sum = Σ over ranks of fp32(slice rank() of whole), added in rank order 0, 1, … in fp32, then
  /// written or accumulated as each part says. All wholes of a part have one dtype on all ranks.
  /// One collective for the list.
  Event reduce_scatter(std::span<const ReducePart> parts, Tag tag, Stream& stream);
  /// Afterwards each whole holds every rank's part in rank order.
  Event all_gather(std::span<const GatherPart> parts, Tag tag, Stream& stream);
  /// Afterwards each view holds what it holds on `root`.
  Event broadcast(std::span<const View> views, int root, Tag tag, Stream& stream);

  /// Blocking. all = every rank's `mine` in rank order; all.size() == mine.size() · size(). Sizes
  /// agree over ranks.
  void exchange(std::span<const std::byte> mine, std::span<std::byte> all, Tag tag);
  /// Blocking. Returns once every rank called it.
  void barrier(Tag tag);

  /// Ends the group: the first failure of all is recorded, and every rank's waits throw a CommError
  /// "rank R failed: text". Never throws, never blocks; callable from any thread.
  virtual void abort(std::string_view text) noexcept = 0;
  /// Throws the group's CommError if it has been aborted.
  virtual void check() const = 0;

  /// Bytes that collectives moved on this rank (read from peers or written into results), and those
  /// that went through staging instead of being read in place; for tests and reports.
  struct Traffic {
    std::int64_t reduced = 0;   // bytes read by reduce_scatter, own contribution included
    std::int64_t gathered = 0;  // bytes written by all_gather and broadcast
    std::int64_t staged = 0;
    std::int64_t collectives = 0;
  };
  [[nodiscard]] virtual Traffic traffic() const noexcept = 0;

  /// How long this rank waits for its peers before CommTimeout; for calls from now on.
  virtual void set_timeout(std::chrono::milliseconds timeout) noexcept = 0;
  /// What this rank is doing, for the report about silent ranks: "step 12, backward, unit block.3".
  /// Copied (159 bytes).
  virtual void set_phase(std::string_view text) noexcept = 0;

 private:
  virtual SharedBuffer do_allocate(std::int64_t bytes, Purpose purpose) = 0;
  virtual Event do_reduce_scatter(std::span<const ReducePart> parts, Tag tag, Stream& stream) = 0;
  virtual Event do_all_gather(std::span<const GatherPart> parts, Tag tag, Stream& stream) = 0;
  virtual Event do_broadcast(std::span<const View> views, int root, Tag tag, Stream& stream) = 0;
  virtual void do_exchange(std::span<const std::byte> mine, std::span<std::byte> all, Tag tag) = 0;
};

}  // namespace sifr
