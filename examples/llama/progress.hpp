#pragma once

#include "examples/llama/metrics.hpp"

#include <chrono>
#include <cstdint>

namespace llama {

/// Lines for people on stdout: the first step, the last, and one every two seconds between.
class Progress {
 public:
  explicit Progress(std::int64_t steps) : steps_(steps) {}
  void show(const StepMetrics& metrics);

 private:
  using Clock = std::chrono::steady_clock;
  std::int64_t steps_;
  std::int64_t tokens_ = 0;
  double seconds_ = 0;
  Clock::time_point last_ = {};
};

/// "1:02:03" or "4:05".
[[nodiscard]] std::string format_duration(double seconds);

}  // namespace llama
