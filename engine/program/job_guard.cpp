#include "engine/program/job_guard.hpp"

#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

namespace sifr::program {
namespace {

[[noreturn]] void guard(int pipe_end) noexcept {
  setpgid(0, 0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  char byte = 0;
  while (read(pipe_end, &byte, 1) < 0 && errno == EINTR)
    continue;
  kill(0, SIGKILL);  // the group, and with it this process
  _exit(0);
}

}  // namespace

JobGuard::JobGuard() {
  std::array<int, 2> ends = {};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe2");
  process_ = fork();
  if (process_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (process_ == 0) {
    close(ends[1]);
    guard(ends[0]);
  }
  setpgid(process_, process_);  // here, too: ranks join the group from now on
  close(ends[0]);
  launcher_end_ = ends[1];
}

JobGuard::~JobGuard() {
  kill(-process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  close(launcher_end_);
}

void JobGuard::send(int signal) const noexcept {
  kill(-process_, signal);
}

}  // namespace sifr::program
