#include "engine/program/rank_process.hpp"

#include "device/usable_cores.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

namespace sifr::program {
namespace {

using Pipe = std::array<int, 2>;

Pipe make_pipe() {
  Pipe ends = {};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe2");
  return ends;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers(texts.size() + 1);
  std::transform(
      texts.begin(), texts.end(), pointers.begin(), [](std::string& text) { return text.data(); });
  return pointers;
}

/// What the child needs; made before the fork, since another thread may hold the allocator's lock
/// during it.
struct ChildView {
  const RankStart& start;
  char* const* arguments;
  char* const* environment;
  pid_t launcher;
  int output;
  int errors;
};

void say(const char* text) noexcept {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) _exit(127);
}

[[noreturn]] void become_rank(const ChildView& child) noexcept {
  setpgid(0, child.start.group);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != child.launcher) _exit(127);  // it died before the line above
  if (child.start.is_bound) sched_setaffinity(0, sizeof(cpu_set_t), &child.start.cores);
  dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  dup2(child.output, STDOUT_FILENO);
  dup2(child.errors, STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGPIPE, SIGXFSZ})
    std::signal(signal, SIG_DFL);
  execvpe(child.arguments[0], child.arguments, child.environment);
  const char* reason = strerrordesc_np(errno);
  say("cannot start ");
  say(child.arguments[0]);
  say(": ");
  say(reason);
  say("\n");
  _exit(127);
}

}  // namespace

RankProcess start_rank(const RankStart& start) {
  std::vector<std::string> command = start.command;
  std::vector<std::string> environment = start.environment;
  const std::vector<char*> arguments = pointers_to(command);
  const std::vector<char*> variables = pointers_to(environment);
  const Pipe output = make_pipe();
  const Pipe errors = make_pipe();
  const ChildView child = {
      start, arguments.data(), variables.data(), getpid(), output[1], errors[1]};
  const pid_t id = fork();
  if (id < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (id == 0) become_rank(child);
  setpgid(id, start.group);
  close(output[1]);
  close(errors[1]);
  fcntl(output[0], F_SETFL, O_NONBLOCK);
  fcntl(errors[0], F_SETFL, O_NONBLOCK);
  return {id, output[0], errors[0]};
}

bool share_of_cores(int rank, int ranks, cpu_set_t& share) {
  const std::vector<int> usable = usable_cores();
  CPU_ZERO(&share);
  const int count = static_cast<int>(usable.size());
  if (count < ranks) return false;
  for (int i = count * rank / ranks; i < count * (rank + 1) / ranks; ++i)
    CPU_SET(usable[static_cast<std::size_t>(i)], &share);
  return true;
}

}  // namespace sifr::program
