#include "config_schema/detail/validate.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace sifr::detail {
namespace {

class Validator {
 public:
  explicit Validator(Reading& reading) : reading_(reading), config_(reading.config) {}

  void check_batch() {
    const Origin* train = origin("/train_batch_size");
    if (train != nullptr && !config_.train_batch_size && train->from.starts_with("auto") &&
        !config_.train_micro_batch_size_per_gpu) {
      reading_.problems.add_unresolved(
          "/train_batch_size", {train->line, train->column}, "micro_batch");
    }
    if (config_.steps_per_print == 0) config_.steps_per_print.reset();
    if (config_.gradient_clipping < 0) {
      tell("/gradient_clipping is negative, which switches clipping off; 0 says so more clearly");
    }
  }

  void check_optimizer() {
    if (!config_.optimizer) return;
    if (origin("/optimizer") != nullptr && origin("/optimizer/type") == nullptr) {
      refuse("/optimizer", "needs a \"type\", such as \"AdamW\"");
    }
    if (config_.optimizer->type == OptimizerType::kAdamW && !config_.optimizer->adam_w_mode) {
      tell("/optimizer/params/adam_w_mode has no effect on AdamW; type Adam has the L2 mode");
    }
  }

  void check_scheduler() {
    if (!config_.scheduler) return;
    SchedulerConfig& scheduler = *config_.scheduler;
    if (origin("/scheduler/type") == nullptr) {
      refuse("/scheduler", "needs a \"type\", such as \"WarmupLR\"");
      return;
    }
    resolve_warmup_max_lr(scheduler);
    if (scheduler.type == SchedulerType::kWarmupLR) return;
    if (!scheduler.total_num_steps) {
      if (origin("/scheduler/params/total_num_steps") == nullptr) {
        refuse("/scheduler/params",
               fmt::format("{} needs total_num_steps; write it or give the hint total_steps",
                           name_of(scheduler.type)));
      }
    } else if (*scheduler.total_num_steps < scheduler.warmup_num_steps) {
      tell(
          fmt::format("/scheduler/params/total_num_steps ({}) is less than warmup_num_steps ({}): "
                      "the lr falls to its end at the end of the warm-up",
                      *scheduler.total_num_steps,
                      scheduler.warmup_num_steps));
    }
  }

  void check_precision() {
    if (config_.fp16.enabled) {
      refuse("/fp16/enabled",
             config_.bf16.enabled
                 ? "fp16 and bf16 are both enabled; enable one (fp16 is not supported yet)"
                 : "fp16 is not supported yet; use \"bf16\": {\"enabled\": true}");
    }
  }

  void check_zero() {
    const ZeroConfig& zero = config_.zero_optimization;
    if (!zero.contiguous_gradients) {
      tell("/zero_optimization/contiguous_gradients has no effect in sifr: they always are");
    }
    if (!zero.reduce_scatter) {
      tell(
          "/zero_optimization/reduce_scatter has no effect in sifr: gradients go to their owner "
          "alone");
    }
    if (config_.sifr.reduce_at == ReduceAt::kBoundary && zero.stage >= 2) {
      refuse("/sifr/reduce_at",
             fmt::format(
                 "\"boundary\" keeps whole gradients between micro-batches, which stage {} does "
                 "not have; use stage 0 or 1, or \"micro_batch\"",
                 zero.stage));
    }
    if (config_.sifr.reduce_at == ReduceAt::kBoundary && config_.communication_data_type) {
      tell(
          "/communication_data_type has no effect with \"reduce_at\": \"boundary\", which sends "
          "fp32 sums");
    }
  }

 private:
  // "auto" that no hint resolves is the optimizer's lr; WarmupDecayLR has a default of its own.
  void resolve_warmup_max_lr(SchedulerConfig& scheduler) {
    const std::string pointer = "/scheduler/params/warmup_max_lr";
    const Origin* place = origin(pointer);
    if (scheduler.warmup_max_lr) return;
    const bool is_auto = place != nullptr && place->from.starts_with("auto");
    if (is_auto && !config_.optimizer) {
      reading_.problems.add_unresolved(pointer, {place->line, place->column}, "lr");
    } else if (is_auto) {
      scheduler.warmup_max_lr = config_.optimizer->lr;
      config_.origins[pointer].from = "auto from the optimizer's lr";
    } else if (scheduler.type == SchedulerType::kWarmupDecayLR) {
      if (config_.optimizer && config_.optimizer->lr != kWarmupDecayMaxLr) {
        tell(fmt::format(
            "{} is not given: WarmupDecayLR rises to {}, not to the optimizer's lr of {}",
            pointer,
            kWarmupDecayMaxLr,
            config_.optimizer->lr));
      }
    }
  }

  const Origin* origin(const std::string& pointer) const {
    const auto found = config_.origins.find(pointer);
    return found == config_.origins.end() ? nullptr : &found->second;
  }

  void refuse(const std::string& pointer, const std::string& text) {
    const Origin* place = origin(pointer);
    // A missing key is reported where its section starts.
    for (std::string parent = pointer; place == nullptr && !parent.empty();) {
      parent.resize(parent.rfind('/'));
      place = origin(parent);
    }
    reading_.problems.add(
        pointer, place == nullptr ? Position{} : Position{place->line, place->column}, text);
  }

  void tell(std::string text) { config_.notices.push_back(std::move(text)); }

  Reading& reading_;
  Config& config_;
};

}  // namespace

void validate(Reading& reading) {
  Validator validator(reading);
  validator.check_batch();
  validator.check_optimizer();
  validator.check_scheduler();
  validator.check_precision();
  validator.check_zero();
}

}  // namespace sifr::detail
