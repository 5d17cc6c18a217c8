#pragma once

#include "comm/detail/abort_page.hpp"
#include "comm/detail/counter.hpp"
#include "comm/detail/descriptor.hpp"
#include "comm/detail/shared_text.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace sifr::detail {

/// Everything that one rank tells the others without moving tensors. The rank alone writes it.
struct alignas(kWriterLine) RankBlock {
  static constexpr std::size_t kMailboxBytes = 16384;

  Counter ready;    // sequence number of the last collective whose descriptor is posted
  Counter done;     // … whose peers' memory this rank has finished to read
  Counter filled;   // pieces that this rank has put into its staging ring
  Counter drained;  // pieces that this rank has taken from everybody's staging rings
  alignas(kWriterLine) std::atomic<std::uint32_t> has_left{0};
  std::atomic<std::uint32_t> is_reading{0};  // 1 while this rank reads its peers' tensors
  alignas(kWriterLine) SharedText phase;     // what the program says it is doing
  SharedText last_call;                      // the last collective that the rank entered
  alignas(kWriterLine) Descriptor descriptor;
  alignas(kWriterLine) std::array<std::byte, kMailboxBytes> mailbox = {};
};

/// What the ranks of a group share, apart from tensors: an abort page and a block for each rank, in
/// memory that all of them map. No pointers inside, no locks: every word has one writer, but for
/// the abort page's first.
///
///   [ AbortPage | RankBlock 0 | RankBlock 1 | … ]
class ControlBlock {
 public:
  [[nodiscard]] static std::size_t bytes_for(int ranks) noexcept;

  /// Constructs the block in zeroed memory of bytes_for(ranks) bytes, aligned to a page, that
  /// `keep` keeps alive.
  ControlBlock(std::byte* memory, int ranks, std::shared_ptr<void> keep) noexcept;
  /// Finds a block that another process constructed.
  [[nodiscard]] static ControlBlock attach(std::byte* memory,
                                           int ranks,
                                           std::shared_ptr<void> keep) noexcept;

  [[nodiscard]] int size() const noexcept { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] AbortPage& abort_page() const noexcept { return *abort_page_; }
  [[nodiscard]] RankBlock& rank(int rank) const noexcept {
    return ranks_[static_cast<std::size_t>(rank)];
  }

  /// Records the failure if it is the first, and ends everybody's sleep.
  void abort(const Failure& failure) const noexcept;
  /// The same, of a rank that fails by itself with this text.
  void fail(int rank, std::string_view text) const noexcept;
  /// Ends everybody's sleep, so that they look at the abort page and at who has left.
  void wake_all() const noexcept;

 private:
  ControlBlock() = default;

  std::shared_ptr<void> keep_;
  AbortPage* abort_page_ = nullptr;
  std::span<RankBlock> ranks_;
};

/// What a rank's program says it is doing, for messages: "step 3", or "not told".
[[nodiscard]] std::string phase_of(const RankBlock& block);

/// What a rank did last, for messages: "last collective: number 16, barrier start; phase: step 3".
[[nodiscard]] std::string whereabouts(const RankBlock& block);

/// A block in ordinary memory, for ranks that are threads.
[[nodiscard]] ControlBlock make_thread_control_block(int ranks);

}  // namespace sifr::detail
