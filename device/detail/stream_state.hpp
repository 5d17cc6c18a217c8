#pragma once

#include "../stream.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>

namespace sifr::detail {

/// What a stream of some kind does. Work is counted by tickets: a point in the stream is the number
/// of tasks submitted before it. Shared by the stream and its events; the events of an ended stream
/// are all complete.
class StreamState {
 public:
  explicit StreamState(StreamKind kind, ThreadPool* pool) noexcept : kind_(kind), pool_(pool) {}
  virtual ~StreamState() = default;
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;

  [[nodiscard]] StreamKind kind() const noexcept { return kind_; }
  [[nodiscard]] ThreadPool* pool() const noexcept { return pool_; }
  [[nodiscard]] virtual Kernels& kernels() noexcept = 0;

  virtual void submit(Task task) = 0;
  /// Tasks submitted so far.
  [[nodiscard]] virtual std::uint64_t submitted() const = 0;
  [[nodiscard]] virtual bool is_complete(std::uint64_t ticket) const = 0;
  /// Blocks until the first `ticket` tasks are done or skipped.
  virtual void block(std::uint64_t ticket) = 0;
  virtual void wait(const Event& event) = 0;
  /// Finishes the queue and ends what runs it. Idempotent.
  virtual void end() noexcept = 0;

  /// Blocks, then throws what one of the first `ticket` tasks threw.
  void wait_for(std::uint64_t ticket) {
    block(ticket);
    if (failed_ticket_.load(std::memory_order_acquire) <= ticket) std::rethrow_exception(error_);
  }
  /// Where `event` was recorded; null for the default event.
  [[nodiscard]] static const StreamState* state_of(const Event& event) noexcept {
    return event.state_.get();
  }

 protected:
  [[nodiscard]] bool has_failed() const noexcept {
    return failed_ticket_.load(std::memory_order_acquire) != kNever;
  }
  /// Task number `ticket` (from 1) threw; called once, by the thread that runs the tasks.
  void fail(std::uint64_t ticket, std::exception_ptr error) noexcept {
    error_ = std::move(error);
    failed_ticket_.store(ticket, std::memory_order_release);
  }
  [[noreturn]] void rethrow() const { std::rethrow_exception(error_); }

 private:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  StreamKind kind_;
  ThreadPool* pool_;
  std::exception_ptr error_;  // readable once failed_ticket_ is set
  std::atomic<std::uint64_t> failed_ticket_ = kNever;
};

[[nodiscard]] std::shared_ptr<StreamState> make_caller_state(ThreadPool* pool);
[[nodiscard]] std::shared_ptr<StreamState> make_worker_state(const std::string& name,
                                                             ThreadPool* pool,
                                                             const std::vector<int>& cpus);

}  // namespace sifr::detail
