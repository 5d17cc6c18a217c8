#include "tests/comm/rank_processes.hpp"

#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <spawn.h>
#include <stdexcept>
#include <thread>
#include <unistd.h>

extern char** environ;

namespace sifr::test {

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

std::string program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

RankProcesses::RankProcesses(const std::vector<std::vector<std::string>>& variables,
                             const std::string& scenario) {
  for (const auto& one : variables)
    start(one, scenario);
}

RankProcesses::RankProcesses(int ranks,
                             const std::string& scenario,
                             const std::vector<std::string>& variables)
    : meeting_point_(std::make_unique<MeetingPoint>(ranks)) {
  for (int r = 0; r < ranks; ++r) {
    std::vector<std::string> all = meeting_point_->environment(r);
    all.insert(all.end(), variables.begin(), variables.end());
    start(all, scenario);
  }
}

RankProcesses::~RankProcesses() {
  for (const Process& process : processes_) {
    if (process.id > 0) {
      kill(process.id, SIGKILL);
      waitpid(process.id, nullptr, 0);
    }
    close(process.output);
    close(process.errors);
  }
}

void RankProcesses::start(const std::vector<std::string>& variables, const std::string& scenario) {
  Process process;
  process.output = memfd_create("output", MFD_CLOEXEC);
  process.errors = memfd_create("errors", MFD_CLOEXEC);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, process.output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, process.errors, STDERR_FILENO);
  std::string program = program_folder() + "/comm_rank";
  std::string argument = scenario;
  const std::array<char*, 3> arguments = {program.data(), argument.data(), nullptr};
  std::vector<std::string> own = variables;
  std::vector<char*> all(own.size());
  std::transform(own.begin(), own.end(), all.begin(), [](std::string& one) { return one.data(); });
  for (char** variable = environ; *variable != nullptr; ++variable)
    all.push_back(*variable);
  all.push_back(nullptr);
  const int error =
      posix_spawn(&process.id, program.c_str(), &files, nullptr, arguments.data(), all.data());
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw std::runtime_error("cannot start " + program);
  processes_.push_back(process);
}

void RankProcesses::wait_until_ready() const {
  while (contents_of(processes_.front().output).find("ready") == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void RankProcesses::send(int rank, int signal) const {
  kill(processes_[static_cast<std::size_t>(rank)].id, signal);
}

std::vector<RankProcesses::Ended> RankProcesses::wait() {
  std::vector<Ended> ended;
  for (Process& process : processes_) {
    int status = 0;
    waitpid(process.id, &status, 0);
    process.id = -1;
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    ended.push_back({code, contents_of(process.output), contents_of(process.errors)});
  }
  return ended;
}

}  // namespace sifr::test
