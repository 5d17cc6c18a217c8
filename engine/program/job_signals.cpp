#include "engine/program/job_signals.hpp"

#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <unistd.h>

namespace sifr::program {
namespace {

// The same signal again means to kill only so long after the first: timeout(1), for one, sends each
// twice at once.
constexpr auto kTwice = std::chrono::seconds(1);

}  // namespace

JobSignals::JobSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD})
    sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  descriptor_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
}

JobSignals::~JobSignals() {
  close(descriptor_);
}

bool JobSignals::pass_on_to(JobGuard& job) {
  signalfd_siginfo info = {};
  bool was_meant = false;
  while (read(descriptor_, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGCHLD) continue;
    pass_on(static_cast<int>(info.ssi_signo), job);
    was_meant = true;
  }
  return was_meant;
}

void JobSignals::pass_on(int signal, JobGuard& job) {
  const auto now = Clock::now();
  const bool is_repeated = signal == last_ && signal != SIGHUP && now - since_ >= kTwice;
  job.send(is_repeated ? SIGKILL : signal);
  if (signal != last_) since_ = now;
  last_ = signal;
}

}  // namespace sifr::program
