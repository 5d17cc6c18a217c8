#pragma once

#include <sys/types.h>

#include <sched.h>
#include <string>
#include <vector>

namespace sifr::program {

/// What a rank's process is started with.
struct RankStart {
  std::vector<std::string> command;
  std::vector<std::string> environment;  // "NAME=value", all of them
  pid_t group = 0;                       // of processes
  bool is_bound = false;
  cpu_set_t cores = {};  // if is_bound
};

/// A started rank and the ends of the pipes where its output arrives (not blocking).
struct RankProcess {
  pid_t id = -1;
  int output = -1;
  int errors = -1;
};

/// Starts the process with no input. It dies with the launcher's thread that called this; a program
/// that cannot be started ends with 127 and says why in its errors. Throws std::system_error.
[[nodiscard]] RankProcess start_rank(const RankStart& start);

/// The cores of rank `rank` of `ranks`, an equal and disjoint share of those that this process may
/// use; false if there are fewer cores than ranks.
[[nodiscard]] bool share_of_cores(int rank, int ranks, cpu_set_t& share);

}  // namespace sifr::program
