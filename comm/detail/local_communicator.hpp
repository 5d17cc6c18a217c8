#pragma once

#include "comm/detail/peer_memory.hpp"
#include "comm/detail/rounds.hpp"
#include "comm/detail/tensor_mover.hpp"
#include "comm/group.hpp"

#include <atomic>
#include <memory>
#include <span>
#include <string_view>

namespace sifr::detail {

/// Ranks of one host, threads or processes alike: nothing is sent, every rank reads its peers'
/// tensors where they lie.
class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(Device& device,
                    int rank,
                    const ControlBlock& control,
                    std::unique_ptr<PeerMemory> memory,
                    const GroupOptions& options);
  LocalCommunicator(const LocalCommunicator&) = delete;
  LocalCommunicator& operator=(const LocalCommunicator&) = delete;
  /// Finishes what is pending, so that peers get what this rank still owes them; during an
  /// exception it ends the group instead.
  ~LocalCommunicator() override;

  [[nodiscard]] int rank() const noexcept override { return rounds_.rank(); }
  [[nodiscard]] int size() const noexcept override { return rounds_.size(); }
  [[nodiscard]] Device& device() noexcept override { return device_; }
  [[nodiscard]] Stream& stream() noexcept override { return stream_; }
  void abort(std::string_view text) noexcept override { rounds_.fail(text); }
  void check() const override { rounds_.check(); }
  [[nodiscard]] Traffic traffic() const noexcept override { return mover_.traffic(); }
  void set_timeout(std::chrono::milliseconds timeout) noexcept override { timeout_.store(timeout); }
  void set_phase(std::string_view text) noexcept override { rounds_.own().phase.store(text); }

 private:
  SharedBuffer do_allocate(std::int64_t bytes, Purpose purpose) override;
  Event do_reduce_scatter(std::span<const ReducePart> parts, Tag tag, Stream& stream) override;
  Event do_all_gather(std::span<const GatherPart> parts, Tag tag, Stream& stream) override;
  Event do_broadcast(std::span<const View> views, int root, Tag tag, Stream& stream) override;
  void do_exchange(std::span<const std::byte> mine, std::span<std::byte> all, Tag tag) override;

  void require_machine(std::int64_t bytes, Purpose purpose, const Call& call);
  [[nodiscard]] Call make_call(Operation operation, std::string_view tag) const noexcept;
  Event enqueue(Stream& stream, Task task);
  template <class Part>
  struct List {
    std::span<const Part> parts;
    int root = 0;
  };
  template <class Part, class Describe, class Move>
  void run_list(const List<Part>& list,
                const Call& call,
                const Describe& describe,
                const Move& move);

  Device& device_;
  std::unique_ptr<PeerMemory> memory_;
  Rounds rounds_;
  std::atomic<std::chrono::milliseconds> timeout_;
  TensorMover mover_;

  Event last_;  // of the last collective that was enqueued
  bool last_was_on_own_stream_ = false;
  Stream stream_;
};

}  // namespace sifr::detail
