#pragma once

#include "../sifr_error.hpp"

#include <functional>
#include <optional>
#include <string>

namespace sifr {

/// Which rank of which job this process is, as its launcher says in environment variables. One rank
/// if none of them says anything.
struct SIFR_API LaunchEnvironment {
  using Lookup = std::function<std::optional<std::string>(const char* name)>;

  static constexpr int kMostRanks = 250;  // of a job

  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the ranks of this host
  int local_size = 1;
  std::string launcher = {};  // "sifr run", "torchrun", "Open MPI", "Slurm"; empty: none
  std::string store = {};     // "host:port" where the ranks meet; `sifr run` only
  std::string token = {};     // 32 hex digits that the store asks for; `sifr run` only
  std::string job =
      {};  // what this host's ranks of one job, and no others, have in common; the other launchers

  /// Understands `sifr run` (SIFR_RANK …), torchrun (RANK, WORLD_SIZE, LOCAL_RANK, …), Open MPI
  /// (OMPI_COMM_WORLD_RANK …) and Slurm's srun (SLURM_PROCID, SLURM_STEP_NUM_TASKS …), in this
  /// order. Throws UsageError naming the variable that is missing, no number, more than kMostRanks
  /// or does not fit the others.
  [[nodiscard]] static LaunchEnvironment from_environment();
  /// The same from any other table of variables.
  [[nodiscard]] static LaunchEnvironment from(const Lookup& variables);
};

}  // namespace sifr
