#include "config_schema/batch_plan.hpp"

#include <fmt/format.h>

#include <limits>

namespace sifr {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();  // samples of a step

// micro · accumulation · world, or nothing beyond kMax.
std::optional<std::int64_t> product(std::int64_t micro,
                                    std::int64_t accumulation,
                                    std::int64_t world) {
  if (micro > kMax / accumulation || micro * accumulation > kMax / world) return std::nullopt;
  return micro * accumulation * world;
}

// DeepSpeed's completion: what is missing, by integer division in this order.
BatchPlan complete(const Config& config, std::int64_t world) {
  const auto& train = config.train_batch_size;
  const auto& micro = config.train_micro_batch_size_per_gpu;
  const auto& accumulation = config.gradient_accumulation_steps;
  if (train && micro && accumulation) return {*train, *micro, *accumulation};
  if (train && micro) return {*train, *micro, *train / *micro / world};
  if (train && accumulation) return {*train, *train / world / *accumulation, *accumulation};
  if (train) return {*train, *train / world, 1};
  const std::int64_t steps = accumulation.value_or(1);
  return {product(*micro, steps, world).value_or(0), *micro, steps};
}

// What no completion makes true, in the numbers that were given.
std::string misfit(const Config& config, std::int64_t world) {
  const auto& train = config.train_batch_size;
  const auto& micro = config.train_micro_batch_size_per_gpu;
  const auto& accumulation = config.gradient_accumulation_steps;
  const auto ranks = fmt::format("{} rank{}", world, world == 1 ? "" : "s");
  if (!train) {
    return fmt::format(
        "train_micro_batch_size_per_gpu {} × gradient_accumulation_steps {}{} × {} is more than "
        "the "
        "{} samples that a step may have",
        *micro,
        accumulation.value_or(1),
        accumulation ? "" : " (not given)",
        ranks,
        kMax);
  }
  if (micro && accumulation) {
    return fmt::format(
        "train_batch_size {} is not train_micro_batch_size_per_gpu {} × "
        "gradient_accumulation_steps {} × {}",
        *train,
        *micro,
        *accumulation,
        ranks);
  }
  std::string divisor = ranks;
  if (micro) divisor = fmt::format("train_micro_batch_size_per_gpu {} × {}", *micro, ranks);
  if (accumulation)
    divisor = fmt::format("gradient_accumulation_steps {} × {}", *accumulation, ranks);
  return fmt::format(
      "train_batch_size {} is no multiple of {}, and {} given",
      *train,
      divisor,
      micro          ? "gradient_accumulation_steps is not"
      : accumulation ? "train_micro_batch_size_per_gpu is not"
                     : "train_micro_batch_size_per_gpu and gradient_accumulation_steps are not");
}

void check_key(const Config& config, const char* key, const std::optional<std::int64_t>& value) {
  if (!value || (*value >= 1 && *value <= kMax)) return;
  throw config_error(
      config, std::string("/") + key, fmt::format("is {}, and must be from 1 to {}", *value, kMax));
}

}  // namespace

BatchPlan resolve_batch(const Config& config, int world) {
  if (world < 1) throw UsageError(fmt::format("a group has at least 1 rank, not {}", world));
  const auto& train = config.train_batch_size;
  const auto& micro = config.train_micro_batch_size_per_gpu;
  if (!train && !micro) {
    throw config_error(
        config,
        "/train_micro_batch_size_per_gpu",
        "needs train_batch_size or train_micro_batch_size_per_gpu (or the hint micro_batch)");
  }
  check_key(config, "train_batch_size", train);
  check_key(config, "train_micro_batch_size_per_gpu", micro);
  check_key(config, "gradient_accumulation_steps", config.gradient_accumulation_steps);
  const BatchPlan plan = complete(config, world);
  if (plan.train < 1 || plan.micro < 1 || plan.accumulation < 1 ||
      product(plan.micro, plan.accumulation, world) != plan.train) {
    throw config_error(config,
                       train ? "/train_batch_size" : "/train_micro_batch_size_per_gpu",
                       "does not fit: " + misfit(config, world));
  }
  return plan;
}

}  // namespace sifr
