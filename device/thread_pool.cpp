#include "device/thread_pool.hpp"

#include "device/detail/check.hpp"
#include "device/detail/settle_thread.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace sifr {
namespace {

/// One parallel_for: whoever takes part draws pieces until none is left.
struct Job {
  void (*piece)(const void*, std::int64_t, std::int64_t) = nullptr;
  const void* object = nullptr;
  std::int64_t count = 0;
  std::int64_t grain = 1;
  std::atomic<std::int64_t> next = 0;
  std::atomic<bool> has_failed = false;
  std::exception_ptr error = nullptr;  // written by the one that turned has_failed on

  void work() noexcept {
    const std::int64_t pieces = (count - 1) / grain + 1;
    for (std::int64_t i = next.fetch_add(1); i < pieces && !has_failed; i = next.fetch_add(1)) {
      const std::int64_t first = i * grain;
      try {
        piece(object, first, first + std::min(grain, count - first));
      } catch (...) {
        if (!has_failed.exchange(true)) error = std::current_exception();
      }
    }
  }
};

}  // namespace

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable begun;
  std::condition_variable ended;
  Job* job = nullptr;            // open for helpers to join
  std::uint64_t generation = 0;  // of the job, so that a helper joins each once
  int active = 0;                // helpers inside the job
  bool is_stopping = false;
  std::atomic<bool> is_busy = false;
  std::vector<std::thread> helpers;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    {
      const std::scoped_lock lock(mutex);
      is_stopping = true;
    }
    begun.notify_all();
    for (std::thread& helper : helpers)
      helper.join();
  }

  void help() {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex);
    while (true) {
      begun.wait(lock, [&] { return is_stopping || (job != nullptr && generation != seen); });
      if (is_stopping) return;
      seen = generation;
      Job* const joined = job;
      ++active;
      lock.unlock();
      joined->work();
      lock.lock();
      if (--active == 0) ended.notify_one();
    }
  }

  void share(Job& shared) {
    {
      const std::scoped_lock lock(mutex);
      job = &shared;
      ++generation;
    }
    begun.notify_all();
    shared.work();
    std::unique_lock lock(mutex);
    job = nullptr;  // helpers that have not come by now stay away
    ended.wait(lock, [&] { return active == 0; });
  }
};

ThreadPool::ThreadPool(int threads, const std::vector<int>& cpus)
    : state_(std::make_unique<State>()) {
  SIFR_REQUIRE(UsageError,
               threads >= 1,
               "a thread pool of {} threads was asked for, needs 1 or more",
               threads);
  state_->helpers.reserve(static_cast<std::size_t>(threads) - 1);
  for (int i = 1; i < threads; ++i) {
    state_->helpers.push_back(
        detail::start_thread("sifr-helper", cpus, [state = state_.get()] { state->help(); }));
  }
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::threads() const noexcept {
  return static_cast<int>(state_->helpers.size()) + 1;
}

void ThreadPool::run(std::int64_t count, std::int64_t grain, Piece piece, const void* object) {
  SIFR_REQUIRE(
      UsageError, grain >= 1, "pieces of {} elements were asked for, needs 1 or more", grain);
  if (count <= 0) return;
  Job job;
  job.piece = piece;
  job.object = object;
  job.count = count;
  job.grain = grain;
  if (count > grain && !state_->helpers.empty() && !state_->is_busy.exchange(true)) {
    state_->share(job);
    state_->is_busy = false;
  } else {
    job.work();
  }
  if (job.error != nullptr) std::rethrow_exception(job.error);
}

}  // namespace sifr
