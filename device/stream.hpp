#pragma once

#include "../sifr_error.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sifr {

class ThreadPool;

namespace detail {
class StreamState;
class Kernels;

/// A move-only `void()` that lives in place: submitting work never allocates.
class Task {
 public:
  static constexpr std::size_t kCapacity = 192;

  Task() = default;
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Task>)
      Task(F&& f) {  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
    using Function = std::remove_cvref_t<F>;
    static_assert(sizeof(Function) <= kCapacity, "capture less, or capture a pointer to it");
    static_assert(alignof(Function) <= alignof(std::max_align_t));
    static_assert(std::is_nothrow_move_constructible_v<Function>);
    new (storage_) Function(std::forward<F>(f));
    call_ = [](void* self) { (*static_cast<Function*>(self))(); };
    move_ = [](void* from, void* to) noexcept {
      if (to != nullptr) new (to) Function(std::move(*static_cast<Function*>(from)));
      static_cast<Function*>(from)->~Function();
    };
  }
  Task(Task&& other) noexcept { take(other); }
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() { reset(); }

  void operator()() { call_(storage_); }
  explicit operator bool() const noexcept { return call_ != nullptr; }

 private:
  void reset() noexcept {
    if (move_ != nullptr) move_(storage_, nullptr);
    call_ = nullptr;
    move_ = nullptr;
  }
  void take(Task& other) noexcept {
    if (other.move_ != nullptr) other.move_(other.storage_, storage_);
    call_ = std::exchange(other.call_, nullptr);
    move_ = std::exchange(other.move_, nullptr);
  }
  void (*call_)(void*) = nullptr;
  void (*move_)(void*, void*) noexcept = nullptr;
  alignas(std::max_align_t) std::byte storage_[kCapacity];
};
}  // namespace detail

/// A point in a stream's work. A value: copies name the same point. The default is a point long
/// past. Memory that the work uses belongs into the submitted task (or stays alive until the event
/// is complete).
class SIFR_API Event {
 public:
  Event() = default;
  /// True once all work before the point is done, or was skipped because earlier work failed.
  [[nodiscard]] bool is_complete() const;
  /// Blocks the calling thread until then; throws what the stream's work threw.
  void wait() const;

 private:
  friend class Stream;
  friend class detail::StreamState;
  Event(std::shared_ptr<detail::StreamState> state, std::uint64_t ticket) noexcept;
  std::shared_ptr<detail::StreamState> state_;
  std::uint64_t ticket_ = 0;
};

enum class StreamKind : std::uint8_t { kCaller, kWorker, kCuda };

/// An ordered queue of work. Move-only. The only ordering verbs are record, wait and synchronize.
///
/// A caller stream has no thread: work is what the calling thread does, now. A worker stream has
/// one host thread and a queue; several threads may use it. When work throws, later work is
/// skipped, events complete with the error, and synchronize throws it (a caller stream's submit
/// does so too); the stream stays failed. Work that waits for, or submits to a full queue of, its
/// own stream fails with a UsageError. Steady-state use allocates nothing.
class SIFR_API Stream {
 public:
  /// `pool` (may be null: all inline) serves the kernels; it outlives the stream.
  [[nodiscard]] static Stream caller(ThreadPool* pool = nullptr);
  /// `cpus`: where the thread may run; empty leaves it free. `name` shows in debuggers (15
  /// characters).
  [[nodiscard]] static Stream worker(const std::string& name,
                                     ThreadPool* pool = nullptr,
                                     const std::vector<int>& cpus = {});
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  /// Finishes the queue; errors of the work are dropped.
  ~Stream();

  /// Enqueues work; blocks only while the queue (1024 tasks) is full. On a caller stream it runs at
  /// once and throws.
  void submit(detail::Task task);
  [[nodiscard]] Event record();
  /// Work submitted later starts after `event`; if that completed with an error, this stream fails
  /// with it. Never blocks on a worker stream; a caller stream blocks now.
  void wait(const Event& event);
  /// Blocks until all submitted work is done; throws what it threw.
  void synchronize();

  [[nodiscard]] StreamKind kind() const noexcept;
  /// The kernels of this stream's device and the helpers that host kernels use; for device/ and for
  /// backends.
  [[nodiscard]] detail::Kernels& kernels() const noexcept;
  [[nodiscard]] ThreadPool* pool() const noexcept;

 private:
  explicit Stream(std::shared_ptr<detail::StreamState> state) noexcept;
  std::shared_ptr<detail::StreamState> state_;
};

}  // namespace sifr
