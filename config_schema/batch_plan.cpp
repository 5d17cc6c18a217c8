#include "config_schema/batch_plan.hpp"

#include <fmt/format.h>

#include <limits>

namespace sifr {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();  // samples of a step

// The key to blame: one that the file has.
std::string batch_key(const Config& config) {
  if (config.train_batch_size) return "/train_batch_size";
  return config.train_micro_batch_size_per_gpu ? "/train_micro_batch_size_per_gpu"
                                               : "/gradient_accumulation_steps";
}

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

std::string described(const BatchPlan& plan, int world) {
  return fmt::format(
      "train_batch_size {} = train_micro_batch_size_per_gpu {} × "
      "gradient_accumulation_steps {} × {} ranks",
      plan.train,
      plan.micro,
      plan.accumulation,
      world);
}

}  // namespace

BatchPlan resolve_batch(const Config& config, int world) {
  if (world < 1) throw UsageError(fmt::format("a group has at least 1 rank, not {}", world));
  if (!config.train_batch_size && !config.train_micro_batch_size_per_gpu) {
    throw config_error(
        config,
        "/train_micro_batch_size_per_gpu",
        "needs train_batch_size or train_micro_batch_size_per_gpu (or the hint micro_batch)");
  }
  for (const auto& key : {config.train_batch_size,
                          config.train_micro_batch_size_per_gpu,
                          config.gradient_accumulation_steps}) {
    if (key && *key < 1)
      throw config_error(config, batch_key(config), "batch keys must be at least 1");
    if (key && *key > kMax) {
      throw config_error(config,
                         batch_key(config),
                         fmt::format("{} samples are more than the {} of a step", *key, kMax));
    }
  }
  const BatchPlan plan = complete(config, world);
  if (plan.train < 1 || plan.micro < 1 || plan.accumulation < 1 ||
      product(plan.micro, plan.accumulation, world) != plan.train) {
    throw config_error(config,
                       batch_key(config),
                       fmt::format("does not fit: {} is not true", described(plan, world)));
  }
  return plan;
}

}  // namespace sifr
