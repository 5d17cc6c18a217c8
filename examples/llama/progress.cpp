#include "examples/llama/progress.hpp"

#include "examples/llama/console.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace llama {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;
constexpr std::chrono::seconds kPause{2};

}  // namespace

std::string format_duration(double seconds) {
  const auto total = std::llround(std::max(seconds, 0.0));
  const auto hours = total / 3600;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, total / 60 % 60, total % 60);
  return fmt::format("{}:{:02}", total / 60, total % 60);
}

std::string Progress::line(const StepMetrics& metrics, Clock::time_point now) {
  ++count_;
  tokens_ += metrics.tokens;
  seconds_ += metrics.seconds;
  const std::int64_t done = metrics.step + 1;
  if (done != 1 && done != steps_ && now - last_ < kPause) return "";
  const double rate = seconds_ > 0 ? static_cast<double>(tokens_) / seconds_ : 0;
  const double per_step = seconds_ / static_cast<double>(count_);
  last_ = now;
  count_ = 0;
  tokens_ = 0;
  seconds_ = 0;
  return fmt::format(
      "step {}/{}  loss {:.4f}  lr {:.2e}  norm {:.3f}{}  {:.0f} tokens/s  "
      "device {:.0f} MiB  ETA {}\n",
      done,
      steps_,
      metrics.report.loss,
      metrics.report.lr,
      metrics.report.gradient_norm,
      metrics.report.outcome == sifr::Outcome::kSkipped ? "  skipped" : "",
      rate,
      static_cast<double>(metrics.memory.total(sifr::Tier::kDevice).now) / kMiB,
      format_duration(per_step * static_cast<double>(steps_ - done)));
}

void Progress::show(const StepMetrics& metrics) {
  print(line(metrics, Clock::now()));
}

}  // namespace llama
