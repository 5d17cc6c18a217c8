#include "comm/detail/quiet_thread.hpp"

#include <csignal>
#include <pthread.h>
#include <utility>

namespace sifr::detail {
namespace {

/// Holds the calling thread's signals back, and those of the threads that it starts meanwhile.
class SignalsHeld {
 public:
  SignalsHeld() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_ = {};
};

}  // namespace

std::thread start_quiet_thread(const char* name, std::function<void()> body) {
  const SignalsHeld held;
  std::thread thread(std::move(body));
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace sifr::detail
