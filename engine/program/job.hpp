#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sifr::program {

struct JobOptions {
  int ranks = 1;
  bool bind_cores = false;
  std::uint16_t port = 0;  // 0: a free one
  std::vector<std::string> command;
};

/// Starts the ranks and returns when all have ended, with the exit code that add_run_command
/// describes. Whatever happens to the launcher, no process of the job stays behind.
/// Throws std::runtime_error naming the limit (ulimit) that is too small for so many ranks.
[[nodiscard]] int run_job(const JobOptions& options);

}  // namespace sifr::program
