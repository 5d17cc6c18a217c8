#pragma once

#include "../device/log.hpp"
#include "./communicator.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace sifr {

/// How long ranks wait for each other.
struct GroupOptions {
  std::chrono::milliseconds timeout = std::chrono::seconds(600);  // then CommTimeout
  std::chrono::milliseconds report_after =
      std::chrono::seconds(10);  // then a notice: who is missing, and where
  Log log = {};
};

/// A group of `devices.size()` ranks that are threads of this process; element r is for the thread
/// that is rank r. The devices outlive the communicators.
[[nodiscard]] SIFR_API std::vector<std::unique_ptr<Communicator>> make_thread_group(
    const std::vector<Device*>& devices, const GroupOptions& options);

}  // namespace sifr
