#include "engine/program/exit_status.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>

namespace sifr::program {

bool ExitStatus::is_success() const noexcept {
  return code() == 0;
}

bool ExitStatus::is_signal() const noexcept {
  return WIFSIGNALED(wait_status_);
}

bool ExitStatus::is_crash() const noexcept {
  return is_signal() && WTERMSIG(wait_status_) != SIGABRT;
}

int ExitStatus::code() const noexcept {
  return is_signal() ? 128 + WTERMSIG(wait_status_) : WEXITSTATUS(wait_status_);
}

std::string ExitStatus::describe() const {
  if (!is_signal()) return fmt::format("ended with code {}", code());
  const int signal = WTERMSIG(wait_status_);
  std::string text = fmt::format("was killed by signal {} ({})", signal, strsignal(signal));
  if (signal == SIGKILL)
    text +=
        ": likely out of memory, if nobody killed it by hand (dmesg or the container's events "
        "tell)";
  return text;
}

}  // namespace sifr::program
