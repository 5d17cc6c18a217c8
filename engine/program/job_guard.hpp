#pragma once

#include <sys/types.h>

namespace sifr::program {

/// A small process that leads the job's process group and sleeps until the launcher ends, however
/// that happens; then it kills the group. It reaches what ranks have started in turn, which a
/// signal tied to the parent's death does not.
class JobGuard {
 public:
  /// Forks. Throws std::system_error.
  JobGuard();
  JobGuard(const JobGuard&) = delete;
  JobGuard& operator=(const JobGuard&) = delete;
  /// Kills whatever is left of the group.
  ~JobGuard();

  [[nodiscard]] pid_t group() const noexcept { return group_; }
  /// To every process of the job; the guard ignores all but SIGKILL.
  void send(int signal) noexcept;
  /// Puts another process in the place of one that somebody else has killed; true if there was
  /// need. Throws std::system_error.
  bool renew();

 private:
  void start();

  pid_t group_ = -1;       // the first process, which stays unreaped: the number is nobody else's
  pid_t process_ = -1;     // the one that guards now
  int launcher_end_ = -1;  // of a pipe that closes with the launcher
  bool is_over_ = false;   // the group has been killed
};

}  // namespace sifr::program
