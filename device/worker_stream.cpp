#include "device/detail/check.hpp"
#include "device/detail/host_kernels.hpp"
#include "device/detail/settle_thread.hpp"
#include "device/detail/stream_state.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace sifr::detail {
namespace {

/// A thread and a ring of tasks. Task number i (from 0) lies in slot i mod 1024 from its submission
/// until it has run:
///
///   0 … done_ − 1: complete    done_: running    done_ + 1 … submitted_ − 1: queued
class WorkerStream final : public StreamState {
 public:
  WorkerStream(const std::string& name, ThreadPool* pool, const std::vector<int>& cpus)
      : StreamState(StreamKind::kWorker, pool), ring_(kCapacity) {
    thread_ = start_thread(name, cpus, [this] { serve(); });
  }
  WorkerStream(const WorkerStream&) = delete;
  WorkerStream& operator=(const WorkerStream&) = delete;
  ~WorkerStream() override { end(); }

  [[nodiscard]] Kernels& kernels() noexcept override { return kernels_; }

  void submit(Task task) override {
    std::unique_lock lock(mutex_);
    const auto has_room = [&] { return submitted_ - done_ < kCapacity; };
    SIFR_REQUIRE(UsageError,
                 has_room() || !is_own_thread(),
                 "work on a stream submits to that stream, whose queue of {} tasks is full",
                 kCapacity);
    progress_.wait(lock, has_room);
    ring_[submitted_ % kCapacity] = std::move(task);
    ++submitted_;
    lock.unlock();
    arrival_.notify_one();
  }

  [[nodiscard]] std::uint64_t submitted() const override {
    const std::scoped_lock lock(mutex_);
    return submitted_;
  }

  [[nodiscard]] bool is_complete(std::uint64_t ticket) const override {
    const std::scoped_lock lock(mutex_);
    return done_ >= ticket;
  }

  void block(std::uint64_t ticket) override {
    std::unique_lock lock(mutex_);
    SIFR_REQUIRE(
        UsageError,
        done_ >= ticket || !is_own_thread(),
        "work on a stream waits for that stream's later work, which cannot begin before it ends");
    progress_.wait(lock, [&] { return done_ >= ticket; });
  }

  void wait(const Event& event) override {
    submit([event] { event.wait(); });
  }

  void end() noexcept override {
    {
      const std::scoped_lock lock(mutex_);
      is_ending_ = true;
    }
    arrival_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

 private:
  static constexpr std::uint64_t kCapacity = 1024;

  [[nodiscard]] bool is_own_thread() const noexcept {
    return std::this_thread::get_id() == thread_.get_id();
  }

  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      arrival_.wait(lock, [&] { return is_ending_ || done_ < submitted_; });
      if (done_ == submitted_) return;
      const std::uint64_t number = done_;
      lock.unlock();
      run(ring_[number % kCapacity], number + 1);
      lock.lock();
      ++done_;
      progress_.notify_all();
    }
  }

  /// The task ends here, with what it holds, before its event is complete.
  void run(Task& slot, std::uint64_t ticket) noexcept {
    Task task = std::move(slot);
    if (has_failed()) return;
    try {
      task();
    } catch (...) {
      fail(ticket, std::current_exception());
    }
  }

  HostKernels kernels_;
  mutable std::mutex mutex_;
  std::condition_variable arrival_;
  std::condition_variable progress_;
  std::vector<Task> ring_;
  std::uint64_t submitted_ = 0;
  std::uint64_t done_ = 0;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace

std::shared_ptr<StreamState> make_worker_state(const std::string& name,
                                               ThreadPool* pool,
                                               const std::vector<int>& cpus) {
  return std::make_shared<WorkerStream>(name, pool, cpus);
}

}  // namespace sifr::detail
