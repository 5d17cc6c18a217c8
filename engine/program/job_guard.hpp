#pragma once

#include <sys/types.h>

namespace sifr::program {

/// A small process that leads the job's process group and sleeps until the launcher ends, however
/// that happens; then it kills the group. It reaches what ranks have started in turn, which a
/// signal tied to the parent's death does not.
class JobGuard {
 public:
  /// Forks; to be made while the launcher has one thread. Throws std::system_error.
  JobGuard();
  JobGuard(const JobGuard&) = delete;
  JobGuard& operator=(const JobGuard&) = delete;
  /// Kills whatever is left of the group.
  ~JobGuard();

  [[nodiscard]] pid_t group() const noexcept { return process_; }
  /// To every process of the job; the guard ignores all but SIGKILL.
  void send(int signal) const noexcept;

 private:
  pid_t process_ = -1;
  int launcher_end_ = -1;  // of a pipe that closes with the launcher
};

}  // namespace sifr::program
