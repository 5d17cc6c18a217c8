#include "comm/launch_environment.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <optional>
#include <string>

using Catch::Matchers::Contains;
using sifr::LaunchEnvironment;

namespace {

LaunchEnvironment read(const std::map<std::string, std::string>& variables) {
  return LaunchEnvironment::from([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string error_of(const std::map<std::string, std::string>& variables) {
  try {
    read(variables);
  } catch (const sifr::UsageError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a process without a launcher is a job of one", "[comm]") {
  const auto environment = read({{"PATH", "/bin"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}});
  CHECK(environment.rank == 0);
  CHECK(environment.size == 1);
  CHECK(environment.launcher.empty());
}

TEST_CASE("sifr run's variables are understood, and come first", "[comm]") {
  const auto environment = read({{"SIFR_RANK", "1"},
                                 {"SIFR_WORLD_SIZE", "3"},
                                 {"SIFR_LOCAL_RANK", "1"},
                                 {"SIFR_LOCAL_WORLD_SIZE", "3"},
                                 {"SIFR_STORE", "127.0.0.1:4000"},
                                 {"SIFR_STORE_TOKEN", "secret"},
                                 {"RANK", "0"},
                                 {"WORLD_SIZE", "2"}});
  CHECK(environment.launcher == "sifr run");
  CHECK(environment.rank == 1);
  CHECK(environment.size == 3);
  CHECK(environment.store == "127.0.0.1:4000");
  CHECK(environment.token == "secret");
}

TEST_CASE("torchrun's variables are understood", "[comm]") {
  const auto environment = read({{"RANK", "5"},
                                 {"WORLD_SIZE", "8"},
                                 {"LOCAL_RANK", "1"},
                                 {"LOCAL_WORLD_SIZE", "4"},
                                 {"MASTER_ADDR", "localhost"},
                                 {"MASTER_PORT", "29500"},
                                 {"TORCHELASTIC_RUN_ID", "none"}});
  CHECK(environment.launcher == "torchrun");
  CHECK(environment.rank == 5);
  CHECK(environment.size == 8);
  CHECK(environment.local_rank == 1);
  CHECK(environment.local_size == 4);
  CHECK(environment.job == "torchrun localhost:29500 none ");
}

TEST_CASE("Open MPI's and Slurm's variables are understood", "[comm]") {
  const auto mpi = read({{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"PMIX_NAMESPACE", "job-7"}});
  CHECK(mpi.launcher == "Open MPI");
  CHECK(mpi.job == "mpi job-7");
  const auto slurm = read({{"SLURM_PROCID", "3"},
                           {"SLURM_STEP_NUM_TASKS", "8"},
                           {"SLURM_LOCALID", "3"},
                           {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"},
                           {"SLURM_JOB_ID", "12"},
                           {"SLURM_STEP_ID", "0"}});
  CHECK(slurm.launcher == "Slurm");
  CHECK(slurm.rank == 3);
  CHECK(slurm.local_size == 4);
  CHECK(slurm.job == "slurm 12.0");
}

TEST_CASE("variables that do not fit are refused by name", "[comm]") {
  CHECK_THAT(error_of({{"RANK", "0"}}), Contains("WORLD_SIZE is not set, as torchrun should have"));
  CHECK_THAT(error_of({{"WORLD_SIZE", "2"}}), Contains("RANK is not set"));
  CHECK_THAT(error_of({{"RANK", "4"}, {"WORLD_SIZE", "4"}}),
             Contains("RANK is 4, but WORLD_SIZE is 4: ranks go from 0 to 3"));
  CHECK_THAT(error_of({{"RANK", "zero"}, {"WORLD_SIZE", "4"}}),
             Contains("RANK is \"zero\", which is no number"));
  CHECK_THAT(error_of({{"RANK", "0"}, {"WORLD_SIZE", "0"}}),
             Contains("WORLD_SIZE is 0, must be at least 1"));
  CHECK_THAT(error_of({{"RANK", "0"}, {"WORLD_SIZE", "1000000000"}}),
             Contains("WORLD_SIZE is 1000000000: a job has at most 250 ranks"));
  CHECK_THAT(error_of({{"SIFR_RANK", "0"}, {"SIFR_WORLD_SIZE", "251"}}),
             Contains("SIFR_WORLD_SIZE is 251: a job has at most 250 ranks"));
  CHECK_THAT(error_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "3"}}),
             Contains("LOCAL_WORLD_SIZE is 3, more than WORLD_SIZE, which is 2"));
  CHECK_THAT(error_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), Contains("MASTER_ADDR is not set"));
  CHECK_THAT(error_of({{"SIFR_RANK", "0"}, {"SIFR_WORLD_SIZE", "2"}}),
             Contains("SIFR_STORE is not set"));
}
