#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace sifr::test {

/// A program that runs beside the test, with its output in memory. Move-only; the end of this
/// object kills it.
class Spawned {
 public:
  struct Ended {
    int code = 0;  // as a shell tells it: 128 + the signal's number
    std::string output;
    std::string errors;
  };

  /// Starts command[0] with `variables` ("NAME=value") in front of the test's own.
  explicit Spawned(std::vector<std::string> command,
                   const std::vector<std::string>& variables = {});
  Spawned(Spawned&& other) noexcept;
  Spawned& operator=(Spawned&&) = delete;
  Spawned(const Spawned&) = delete;
  Spawned& operator=(const Spawned&) = delete;
  ~Spawned();

  /// Waits until the output holds `text`.
  void wait_for(const std::string& text) const;
  void send(int signal) const;
  [[nodiscard]] Ended wait();
  [[nodiscard]] pid_t id() const noexcept { return id_; }
  [[nodiscard]] std::string output() const;
  [[nodiscard]] std::string errors() const;

 private:
  pid_t id_ = -1;
  int output_ = -1;
  int errors_ = -1;
};

/// True once the process is gone or nothing but its exit code is left.
[[nodiscard]] bool has_ended(pid_t process);

/// The processes that a process has started, oldest first; of a launcher the guard, then the ranks.
[[nodiscard]] std::vector<pid_t> children_of(pid_t process);

/// Where the build puts its programs, this one among them.
[[nodiscard]] std::string program_folder();

/// A job of `comm_rank` processes (rank_program.cpp) that run `scenario`, joined by a meeting point
/// that outlives them. `variables` holds a list for each rank.
[[nodiscard]] std::vector<Spawned> start_ranks(
    const std::vector<std::vector<std::string>>& variables, const std::string& scenario);
[[nodiscard]] std::vector<Spawned::Ended> wait_all(std::vector<Spawned>& ranks);

}  // namespace sifr::test
