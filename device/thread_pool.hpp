#pragma once

#include "../sifr_error.hpp"

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

namespace sifr {

/// The helpers of one rank: `threads - 1` threads that take part in parallel_for. One thread means
/// that all runs inline.
class SIFR_API ThreadPool {
 public:
  /// `cpus`: the cores that the helpers are bound to; empty leaves them free. Throws UsageError
  /// unless threads ≥ 1, DeviceError if the system has not as many.
  explicit ThreadPool(int threads, const std::vector<int>& cpus = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const noexcept;

  /// Calls f(first, last) for the pieces [0, grain), [grain, 2·grain) … of [0, count), each once,
  /// on the caller and the helpers; returns when all are done. The pieces follow from `grain` (≥ 1)
  /// alone, never from the number of threads. A piece must not wait, lock or call back; nested use,
  /// and use while another thread is in a parallel_for, runs inline. The first exception is
  /// rethrown at the end; pieces that had not begun by then are left out. Allocates nothing.
  template <class F>
  void parallel_for(std::int64_t count, std::int64_t grain, const F& f) {
    const Piece piece = [](const void* object, std::int64_t first, std::int64_t last) {
      (*static_cast<const F*>(object))(first, last);
    };
    run(count, grain, piece, &f);
  }

 private:
  using Piece = void (*)(const void* object, std::int64_t first, std::int64_t last);
  void run(std::int64_t count, std::int64_t grain, Piece piece, const void* object);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sifr
