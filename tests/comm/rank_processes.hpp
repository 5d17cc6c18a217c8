#pragma once

#include "comm/meeting_point.hpp"

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

namespace sifr::test {

/// A job of `comm_rank` processes, each with its output in memory. The end of this object kills
/// what still runs.
class RankProcesses {
 public:
  struct Ended {
    int code = 0;  // as a shell tells it: 128 + the signal's number
    std::string output;
    std::string errors;
  };

  /// Starts `scenario` on every rank, with `variables` ("NAME=value") beside those of the meeting
  /// point.
  RankProcesses(int ranks,
                const std::string& scenario,
                const std::vector<std::string>& variables = {});
  /// The same with all variables given: one list for each rank.
  RankProcesses(const std::vector<std::vector<std::string>>& variables,
                const std::string& scenario);
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;
  ~RankProcesses();

  /// Waits until rank 0 has printed "ready".
  void wait_until_ready() const;
  void send(int rank, int signal) const;
  /// Waits for every process.
  [[nodiscard]] std::vector<Ended> wait();

 private:
  struct Process {
    pid_t id = -1;
    int output = -1;
    int errors = -1;
  };
  void start(const std::vector<std::string>& variables, const std::string& scenario);

  std::unique_ptr<MeetingPoint> meeting_point_;
  std::vector<Process> processes_;
};

/// All bytes of an open file from its start.
[[nodiscard]] std::string contents_of(int descriptor);

/// The folder of the test's own program, where the others lie, too.
[[nodiscard]] std::string program_folder();

}  // namespace sifr::test
