#pragma once

#include "engine/program/job_guard.hpp"

#include <chrono>

namespace sifr::program {

/// The signals that the launcher gets for its job: they wait until they are taken, and go on to the
/// ranks. The same one again, a second later, kills the job.
class JobSignals {
 public:
  /// Throws std::system_error.
  JobSignals();
  JobSignals(const JobSignals&) = delete;
  JobSignals& operator=(const JobSignals&) = delete;
  ~JobSignals();

  /// Readable when a signal waits, or a rank has ended.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// Passes on what waits; true if something was meant for the job.
  bool pass_on_to(JobGuard& job);
  [[nodiscard]] bool have_come() const noexcept { return last_ != 0; }

 private:
  using Clock = std::chrono::steady_clock;
  void pass_on(int signal, JobGuard& job);

  int descriptor_ = -1;
  int last_ = 0;             // that was passed on
  Clock::time_point since_;  // the first of its kind in a row
};

}  // namespace sifr::program
