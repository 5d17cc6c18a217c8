#pragma once

#include "../device/log.hpp"
#include "./communicator.hpp"
#include "./launch_environment.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sifr {

/// How ranks wait for each other.
struct GroupOptions {
  std::chrono::milliseconds timeout = std::chrono::seconds(600);  // then CommTimeout
  std::chrono::milliseconds report_after =
      std::chrono::seconds(10);  // then a notice: who is missing, and where
  bool has_own_core =
      false;  // no other rank runs on this rank's cores: a wait may spin before it sleeps
  Log log = {};
};

/// A group of `devices.size()` ranks that are threads of this process; element r is for the thread
/// that is rank r. The devices outlive the communicators.
[[nodiscard]] SIFR_API std::vector<std::unique_ptr<Communicator>> make_thread_group(
    const std::vector<Device*>& devices, const GroupOptions& options);

/// This process's communicator in a group of processes of one host that a launcher started, all of
/// which call this. Joins them by what the launcher left in the environment; a group of one needs
/// nothing. The device outlives the communicator. Throws CommError if a rank died or is on another
/// host, CommTimeout if one never comes.
[[nodiscard]] SIFR_API std::unique_ptr<Communicator> make_process_group(
    Device& device, const LaunchEnvironment& environment, const GroupOptions& options);

/// This rank's bytes in, every rank's out in rank order; collective. What any launcher can offer:
/// MPI_Allgather does.
using Exchange = std::function<std::vector<std::string>(std::string_view mine)>;

/// The same for processes that find each other by other means; `exchange` is called twice on every
/// rank.
[[nodiscard]] SIFR_API std::unique_ptr<Communicator> join_process_group(
    Device& device, int rank, int size, const Exchange& exchange, const GroupOptions& options);

}  // namespace sifr
