#pragma once

#include "examples/llama/metrics.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace llama {

/// Lines for people on stdout: the first step, the last, and one every two seconds between. Rate
/// and remaining time are those of the steps since the line before, so that a change shows.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Progress(std::int64_t steps) : steps_(steps) {}
  void show(const StepMetrics& metrics);
  /// The line of this step, with its end; empty if none is due.
  [[nodiscard]] std::string line(const StepMetrics& metrics, Clock::time_point now);

 private:
  std::int64_t steps_;
  Clock::time_point last_ = {};
  // Since the line before:
  std::int64_t count_ = 0;  // steps
  std::int64_t tokens_ = 0;
  double seconds_ = 0;
};

/// "1:02:03" or "4:05".
[[nodiscard]] std::string format_duration(double seconds);

}  // namespace llama
