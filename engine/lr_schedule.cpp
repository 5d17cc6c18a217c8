#include "engine/lr_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

// Every expression keeps DeepSpeed's order of operations, for the sake of equal bits. Must be built
// without contraction to fused multiply-adds.

namespace sifr {
namespace {

// How far the warm-up has come at step t, in [0, 1).
class Warmup {
 public:
  explicit Warmup(const SchedulerConfig& config)
      : steps_(std::max<std::int64_t>(2, config.warmup_num_steps)),
        type_(config.warmup_type),
        inverse_log_(1.0 / std::log(static_cast<double>(steps_))) {}

  [[nodiscard]] std::int64_t steps() const { return steps_; }
  [[nodiscard]] double progress(std::int64_t t) const {
    if (type_ == WarmupType::kLog) return inverse_log_ * std::log(static_cast<double>(t + 1));
    return static_cast<double>(t) / static_cast<double>(steps_);
  }

 private:
  std::int64_t steps_;
  WarmupType type_;
  double inverse_log_;
};

// WarmupLR and, where there is a total, WarmupDecayLR.
Schedule make_linear(const SchedulerConfig& config,
                     double max_lr,
                     std::optional<std::int64_t> total) {
  const Warmup warmup(config);
  const double min_lr = config.warmup_min_lr;
  return [=](std::int64_t update) {
    const std::int64_t t = update - 1;
    if (t < 0) return min_lr;
    double gamma = 1.0;
    if (t < warmup.steps()) {
      gamma = warmup.progress(t);
    } else if (total) {
      const auto decay_steps = std::max(1.0, static_cast<double>(*total - warmup.steps()));
      gamma = std::max(0.0, static_cast<double>(*total - t) / decay_steps);
    }
    return min_lr + (max_lr - min_lr) * gamma;
  };
}

Schedule make_cosine(const SchedulerConfig& config, double base_lr, std::int64_t total) {
  const Warmup warmup(config);
  const double first = config.warmup_min_ratio;
  const double last = config.cos_min_ratio;
  return [=](std::int64_t update) {
    const std::int64_t t = update - 1;
    if (t < 0) return 0.0;
    if (t < warmup.steps()) return base_lr * (first + warmup.progress(t) * (1.0 - first));
    const auto decayed = static_cast<double>(t - warmup.steps() + 1);
    const auto decay_steps = static_cast<double>(std::max<std::int64_t>(1, total - warmup.steps()));
    const double progress = std::min(1.0, decayed / decay_steps);
    const double cosine = (1 + std::cos(std::numbers::pi * progress)) / 2;
    return base_lr * std::max(0.0, last + (1.0 - last) * cosine);
  };
}

}  // namespace

Schedule make_schedule(const SchedulerConfig& config, double base_lr) {
  if (config.warmup_num_steps < 1) throw UsageError("warmup_num_steps must be at least 1");
  if (config.type == SchedulerType::kWarmupLR) {
    return make_linear(config, config.warmup_max_lr.value_or(base_lr), std::nullopt);
  }
  if (!config.total_num_steps) {
    throw UsageError("WarmupDecayLR and WarmupCosineLR need total_num_steps");
  }
  if (config.type == SchedulerType::kWarmupDecayLR) {
    const double max_lr = config.warmup_max_lr.value_or(kWarmupDecayMaxLr);
    return make_linear(config, max_lr, config.total_num_steps);
  }
  return make_cosine(config, base_lr, *config.total_num_steps);
}

}  // namespace sifr
