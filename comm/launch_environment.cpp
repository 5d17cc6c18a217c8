#include "comm/launch_environment.hpp"

#include "device/detail/check.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace sifr {
namespace {

/// The names of one launcher's variables. Only rank and size must be set.
struct Names {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

constexpr Names kSifr = {
    "sifr run", "SIFR_RANK", "SIFR_WORLD_SIZE", "SIFR_LOCAL_RANK", "SIFR_LOCAL_WORLD_SIZE"};
constexpr Names kTorchrun = {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names kOpenMpi = {"Open MPI",
                            "OMPI_COMM_WORLD_RANK",
                            "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_RANK",
                            "OMPI_COMM_WORLD_LOCAL_SIZE"};
// SLURM_STEP_NUM_TASKS is srun's; SLURM_PROCID alone is also set in a batch script, which is no
// rank.
constexpr Names kSlurm = {
    "Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"};

class Reader {
 public:
  explicit Reader(const LaunchEnvironment::Lookup& variables) : variables_(variables) {}

  [[nodiscard]] bool is_set(const char* name) const { return variables_(name).has_value(); }
  [[nodiscard]] std::string text(const char* name) const { return variables_(name).value_or(""); }
  [[nodiscard]] std::string required(const char* name, const char* launcher) const {
    const auto value = variables_(name);
    SIFR_REQUIRE(
        UsageError, value && !value->empty(), "{} is not set, as {} should have", name, launcher);
    return *value;
  }
  [[nodiscard]] int number(const char* name, const char* launcher) const {
    const std::string value = required(name, launcher);
    // "4(x2)" is Slurm's way to say 4 on each of 2 nodes.
    const std::string_view digits = std::string_view(value).substr(0, value.find_first_of("(,"));
    int result = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), result);
    const bool is_number = error == std::errc() && end == digits.data() + digits.size();
    SIFR_REQUIRE(UsageError, is_number, "{} is \"{}\", which is no number of ranks", name, value);
    return result;
  }
  [[nodiscard]] int number_or(const char* name, const char* launcher, int otherwise) const {
    return is_set(name) ? number(name, launcher) : otherwise;
  }

 private:
  const LaunchEnvironment::Lookup& variables_;
};

void check_fits(const char* rank_name, int rank, const char* size_name, int size) {
  SIFR_REQUIRE(UsageError, size >= 1, "{} is {}, must be at least 1", size_name, size);
  SIFR_REQUIRE(UsageError,
               size <= LaunchEnvironment::kMostRanks,
               "{} is {}: a job has at most {} ranks",
               size_name,
               size,
               LaunchEnvironment::kMostRanks);
  SIFR_REQUIRE(UsageError,
               rank >= 0 && rank < size,
               "{} is {}, but {} is {}: ranks go from 0 to {}",
               rank_name,
               rank,
               size_name,
               size,
               size - 1);
}

LaunchEnvironment read(const Reader& reader, const Names& names) {
  LaunchEnvironment environment;
  environment.launcher = names.launcher;
  environment.rank = reader.number(names.rank, names.launcher);
  environment.size = reader.number(names.size, names.launcher);
  environment.local_rank = reader.number_or(names.local_rank, names.launcher, environment.rank);
  environment.local_size = reader.number_or(names.local_size, names.launcher, environment.size);
  check_fits(names.rank, environment.rank, names.size, environment.size);
  check_fits(names.local_rank, environment.local_rank, names.local_size, environment.local_size);
  SIFR_REQUIRE(UsageError,
               environment.local_size <= environment.size,
               "{} is {}, more than {}, which is {}",
               names.local_size,
               environment.local_size,
               names.size,
               environment.size);
  return environment;
}

std::string torchrun_job(const Reader& reader) {
  const std::string address = reader.required("MASTER_ADDR", "torchrun");
  const std::string port = reader.required("MASTER_PORT", "torchrun");
  return fmt::format("torchrun {}:{} {} {}",
                     address,
                     port,
                     reader.text("TORCHELASTIC_RUN_ID"),
                     reader.text("TORCHELASTIC_RESTART_COUNT"));
}

bool is_used(const Reader& reader, const Names& names) {
  return reader.is_set(names.rank) || reader.is_set(names.size);
}

}  // namespace

LaunchEnvironment LaunchEnvironment::from(const Lookup& variables) {
  const Reader reader(variables);
  LaunchEnvironment environment;
  if (is_used(reader, kSifr)) {
    environment = read(reader, kSifr);
    environment.store = reader.required("SIFR_STORE", kSifr.launcher);
    environment.token = reader.required("SIFR_STORE_TOKEN", kSifr.launcher);
  } else if (is_used(reader, kTorchrun)) {
    environment = read(reader, kTorchrun);
    if (environment.size > 1) environment.job = torchrun_job(reader);
  } else if (is_used(reader, kOpenMpi)) {
    environment = read(reader, kOpenMpi);
    environment.job =
        "mpi " + reader.text("PMIX_NAMESPACE") + reader.text("OMPI_MCA_ess_base_jobid");
  } else if (reader.is_set(kSlurm.size)) {
    environment = read(reader, kSlurm);
    environment.job = "slurm " + reader.text("SLURM_JOB_ID") + "." + reader.text("SLURM_STEP_ID");
  }
  return environment;
}

LaunchEnvironment LaunchEnvironment::from_environment() {
  return from([](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return value;
  });
}

}  // namespace sifr
