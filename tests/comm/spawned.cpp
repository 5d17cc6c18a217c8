#include "tests/comm/spawned.hpp"

#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <spawn.h>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <utility>

extern char** environ;

namespace sifr::test {
namespace {

std::string contents_of(int descriptor) {
  std::string text;
  std::array<char, 4096> piece = {};
  ssize_t count = 0;
  while ((count = pread(descriptor, piece.data(), piece.size(), static_cast<off_t>(text.size()))) >
         0) {
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
  return text;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers(texts.size());
  std::transform(
      texts.begin(), texts.end(), pointers.begin(), [](std::string& text) { return text.data(); });
  return pointers;
}

}  // namespace

Spawned::Spawned(std::vector<std::string> command, const std::vector<std::string>& variables)
    : output_(memfd_create("output", MFD_CLOEXEC)), errors_(memfd_create("errors", MFD_CLOEXEC)) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, output_, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, errors_, STDERR_FILENO);
  std::vector<std::string> own = variables;
  std::vector<char*> environment = pointers_to(own);
  for (char** variable = environ; *variable != nullptr; ++variable)
    environment.push_back(*variable);
  environment.push_back(nullptr);
  std::vector<char*> arguments = pointers_to(command);
  arguments.push_back(nullptr);
  // A suite in the background of a shell ignores signals, and what ignores one cannot trap it.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP})
    sigaddset(&signals, signal);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int error =
      posix_spawnp(&id_, arguments[0], &files, &attributes, arguments.data(), environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw std::runtime_error("cannot start " + command[0]);
}

Spawned::Spawned(Spawned&& other) noexcept
    : id_(std::exchange(other.id_, -1)),
      output_(std::exchange(other.output_, -1)),
      errors_(std::exchange(other.errors_, -1)) {}

Spawned::~Spawned() {
  if (id_ > 0) {
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  if (output_ >= 0) close(output_);
  if (errors_ >= 0) close(errors_);
}

std::string Spawned::output() const {
  return contents_of(output_);
}

std::string Spawned::errors() const {
  return contents_of(errors_);
}

void Spawned::wait_for(const std::string& text) const {
  while (output().find(text) == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void Spawned::send(int signal) const {
  kill(id_, signal);
}

Spawned::Ended Spawned::wait() {
  int status = 0;
  waitpid(std::exchange(id_, -1), &status, 0);
  const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return {code, contents_of(output_), contents_of(errors_)};
}

bool has_ended(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return true;
  return line.substr(line.rfind(')')).starts_with(") Z");
}

std::vector<pid_t> children_of(pid_t process) {
  const std::string name = std::to_string(process);
  std::ifstream text("/proc/" + name + "/task/" + name + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; text >> child;)
    children.push_back(child);
  return children;
}

std::string program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

std::vector<Spawned> start_ranks(const std::vector<std::vector<std::string>>& variables,
                                 const std::string& scenario) {
  std::vector<Spawned> ranks;
  ranks.reserve(variables.size());
  for (const auto& one : variables)
    ranks.emplace_back(std::vector<std::string>{program_folder() + "/comm_rank", scenario}, one);
  return ranks;
}

std::vector<Spawned::Ended> wait_all(std::vector<Spawned>& ranks) {
  std::vector<Spawned::Ended> ended;
  ended.reserve(ranks.size());
  for (Spawned& rank : ranks)
    ended.push_back(rank.wait());
  return ended;
}

}  // namespace sifr::test
