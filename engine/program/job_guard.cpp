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

/// `group` 0: a new one. Other threads of the launcher may hold any lock: nothing here takes one.
[[noreturn]] void guard(pid_t group, int pipe_end) noexcept {
  if (setpgid(0, group) != 0) _exit(1);  // never the launcher's own group
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  dup2(pipe_end, STDIN_FILENO);
  close_range(STDOUT_FILENO, ~0U, 0);  // whatever the launcher has open ends with it alone
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
    continue;
  kill(0, SIGKILL);  // the group, and with it this process
  _exit(0);
}

bool has_ended(pid_t process) noexcept {
  siginfo_t info = {};
  return waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == process;
}

}  // namespace

JobGuard::JobGuard() {
  start();
  group_ = process_;
}

JobGuard::~JobGuard() {
  kill(-group_, SIGKILL);
  if (process_ != group_) waitpid(process_, nullptr, 0);
  waitpid(group_, nullptr, 0);
  close(launcher_end_);
}

void JobGuard::start() {
  std::array<int, 2> ends = {};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe2");
  const pid_t group = group_ < 0 ? 0 : group_;
  process_ = fork();
  if (process_ == 0) {
    close(ends[1]);
    guard(group, ends[0]);
  }
  const int error = errno;
  close(ends[0]);
  if (launcher_end_ >= 0) close(launcher_end_);
  launcher_end_ = ends[1];
  if (process_ < 0) throw std::system_error(error, std::generic_category(), "fork");
  setpgid(process_, group);  // here, too: ranks join the group from now on
}

void JobGuard::send(int signal) noexcept {
  is_over_ |= signal == SIGKILL;
  kill(-group_, signal);
}

bool JobGuard::renew() {
  if (is_over_ || !has_ended(process_)) return false;
  if (process_ != group_) waitpid(process_, nullptr, 0);
  start();
  return true;
}

}  // namespace sifr::program
