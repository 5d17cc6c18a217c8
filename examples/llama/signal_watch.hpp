#pragma once

#include <atomic>
#include <csignal>
#include <thread>

namespace llama {

/// Catches SIGINT and SIGTERM in a thread of its own, so that a run can end between two steps.
/// Until expect() and from the second signal on (a second or more after the first: launchers may
/// deliver one twice) a signal ends the process at once, as usual. One per process; made before any
/// other thread, which inherit its signal mask.
class SignalWatch {
 public:
  SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

  /// From now on the run asks happened() after every step.
  void expect() noexcept { is_expected_ = true; }
  [[nodiscard]] bool happened() const noexcept { return happened_; }

 private:
  void watch();

  sigset_t signals_ = {};
  sigset_t former_ = {};
  std::atomic<bool> is_expected_ = false;
  std::atomic<bool> happened_ = false;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

}  // namespace llama
