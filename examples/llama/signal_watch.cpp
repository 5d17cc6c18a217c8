#include "examples/llama/signal_watch.hpp"

#include <cerrno>
#include <chrono>
#include <pthread.h>

namespace llama {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kTwice{1};
constexpr timespec kGlance = {.tv_sec = 0, .tv_nsec = 100'000'000};

// As if nobody had caught it: the exit status tells the signal.
void end_process(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  std::raise(signal);
}

}  // namespace

SignalWatch::SignalWatch() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals_, &former_);
  thread_ = std::thread([this] { watch(); });
}

SignalWatch::~SignalWatch() {
  is_over_ = true;
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &former_, nullptr);
}

void SignalWatch::watch() {
  Clock::time_point first;
  while (!is_over_) {
    const int signal = sigtimedwait(&signals_, nullptr, &kGlance);
    if (signal < 0) continue;  // nothing for a while
    if (!is_expected_) end_process(signal);
    if (happened_ && Clock::now() - first >= kTwice) end_process(signal);
    if (!happened_) first = Clock::now();
    happened_ = true;
  }
}

}  // namespace llama
