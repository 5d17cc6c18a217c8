#pragma once

#include "config_schema/config.hpp"
#include "config_schema/detail/field_info.hpp"

// Every key that sifr uses, once: its name, member, meaning, range and "auto". A visitor has
//   field(FieldInfo, member)            a value
//   group(GroupInfo, fields)            an object; fields(visitor) visits what is in it
//   optional_group(GroupInfo, optional section, fields)   fields(visitor, section)
// C is Config or const Config; to add a key is to add a line here and a member there.

namespace sifr::detail {

inline constexpr std::string_view kOtherOptimizers[] = {"Lamb",
                                                        "OneBitAdam",
                                                        "ZeroOneAdam",
                                                        "OneBitLamb",
                                                        "Lion",
                                                        "Adagrad",
                                                        "Muon",
                                                        "MuAdam",
                                                        "MuAdamW",
                                                        "MuSGD",
                                                        "SGD"};
inline constexpr std::string_view kOtherSchedulers[] = {"LRRangeTest", "OneCycle"};

inline constexpr std::string_view kFromOtherBatchKeys = "from the other batch keys";

template <class Visitor, class C>
void visit_batch(Visitor& v, C& config) {
  v.field({.key = "train_batch_size",
           .meaning = "samples per step, over all ranks",
           .range = kCount,
           .auto_rule = &kAutoTrainBatch,
           .unit = "samples",
           .unset = kFromOtherBatchKeys},
          config.train_batch_size);
  v.field({.key = "train_micro_batch_size_per_gpu",
           .meaning = "samples per rank and micro-batch",
           .range = kCount,
           .auto_rule = &kAutoMicroBatch,
           .unit = "samples",
           .unset = kFromOtherBatchKeys},
          config.train_micro_batch_size_per_gpu);
  v.field({.key = "gradient_accumulation_steps",
           .meaning = "micro-batches per step",
           .range = kCount,
           .auto_rule = &kAutoAccumulation,
           .unit = "micro-batches",
           .unset = kFromOtherBatchKeys},
          config.gradient_accumulation_steps);
}

template <class Visitor, class C>
void visit_training(Visitor& v, C& config) {
  v.field({.key = "steps_per_print",
           .meaning = "a progress line every so many steps; null or 0: none",
           .range = kNotNegative,
           .unit = "steps"},
          config.steps_per_print);
  v.field({"gradient_clipping",
           "largest L2 norm of all gradients together; 0 or less: no clipping",
           kAnyNumber,
           &kAutoClipping},
          config.gradient_clipping);
  v.field({.key = "communication_data_type",
           .meaning = "dtype in which gradients travel between ranks; null: the gradient's own",
           .unset = "the gradient's own"},
          config.communication_data_type);
}

template <class Visitor, class O>
void visit_optimizer(Visitor& v, O& optimizer) {
  v.field({.key = "type",
           .meaning = "Adam or AdamW; Adam is AdamW unless adam_w_mode is false",
           .ignores_case = true,
           .unsupported = kOtherOptimizers},
          optimizer.type);
  v.group({"params", R"({"lr": 1e-3})"}, [&](auto& p) {
    p.field({"lr", "learning rate, the peak of a schedule", kFp32, &kAutoLr}, optimizer.lr);
    p.field({"betas", "decay rates of the two moments", {0, 1, false, true}, &kAutoBetas},
            optimizer.betas);
    p.field({"eps", "added to the root of the second moment", kFp32, &kAutoEps}, optimizer.eps);
    p.field({"weight_decay",
             "share of a weight taken off per step, times lr",
             kFp32,
             &kAutoWeightDecay},
            optimizer.weight_decay);
    p.field({"bias_correction", "divide the moments by 1 - beta^k"}, optimizer.bias_correction);
    p.field({"adam_w_mode", "Adam: true decays the weight, false adds decay to the gradient"},
            optimizer.adam_w_mode);
  });
}

template <class Visitor, class S>
void visit_scheduler(Visitor& v, S& scheduler) {
  v.field({.key = "type",
           .meaning = "WarmupLR, WarmupDecayLR or WarmupCosineLR",
           .unsupported = kOtherSchedulers},
          scheduler.type);
  v.group({"params", R"({"warmup_num_steps": 100})"}, [&](auto& p) {
    const bool is_cosine = scheduler.type == SchedulerType::kWarmupCosineLR;
    const bool ends = scheduler.type != SchedulerType::kWarmupLR;
    p.field({.key = "warmup_min_lr",
             .meaning = "lr at the first step",
             .range = kFp32,
             .auto_rule = &kAutoWarmupMinLr,
             .applies = !is_cosine},
            scheduler.warmup_min_lr);
    p.field({.key = "warmup_max_lr",
             .meaning = "lr after warm-up; unset: the optimizer's (WarmupDecayLR: 0.001)",
             .range = kFp32,
             .auto_rule = &kAutoWarmupMaxLr,
             .applies = !is_cosine,
             .unset = ends ? "0.001" : "the optimizer's lr"},
            scheduler.warmup_max_lr);
    p.field({.key = "warmup_num_steps",
             .meaning = "steps of the warm-up; 1 counts as 2",
             .range = kCount,
             .auto_rule = &kAutoWarmupSteps,
             .unit = "steps"},
            scheduler.warmup_num_steps);
    p.field({"warmup_type", "log or linear"}, scheduler.warmup_type);
    p.field({.key = "total_num_steps",
             .meaning = "steps of the whole training (WarmupDecayLR and WarmupCosineLR)",
             .range = kCount,
             .auto_rule = &kAutoTotalSteps,
             .applies = ends,
             .unit = "steps"},
            scheduler.total_num_steps);
    p.field({.key = "warmup_min_ratio",
             .meaning = "WarmupCosineLR: first lr, as a share of the optimizer's",
             .range = {0, 1},
             .applies = is_cosine},
            scheduler.warmup_min_ratio);
    p.field({.key = "cos_min_ratio",
             .meaning = "WarmupCosineLR: last lr, as a share of the optimizer's",
             .range = {0, 1},
             .applies = is_cosine},
            scheduler.cos_min_ratio);
  });
}

template <class Visitor, class C>
void visit_precision(Visitor& v, C& config) {
  v.group({"bf16", R"({"enabled": true})", true}, [&](auto& g) {
    g.field({"enabled", "weights and gradients in bf16, masters in fp32", kAnyNumber, &kAutoBf16},
            config.bf16.enabled);
    g.field({.key = "check_grad_overflow",
             .meaning = "skip a step with a NaN or infinite gradient; false: stop",
             .auto_is_default = true},
            config.bf16.check_grad_overflow);
  });
  v.group({"fp16", R"({"enabled": true})", true}, [&](auto& g) {
    g.field({.key = "enabled",
             .meaning = "not supported yet; use bf16",
             .auto_rule = &kAutoFp16,
             .auto_is_default = config.bf16.enabled},
            config.fp16.enabled);
  });
}

template <class Visitor, class Z>
void visit_zero(Visitor& v, Z& zero) {
  v.field(
      {"stage", "0: all whole; 1: optimizer state, 2: gradients, 3: weights sharded too", {0, 3}},
      zero.stage);
  v.field({.key = "reduce_bucket_size",
           .meaning = "elements of gradients that are reduced together",
           .range = kNotNegative,
           .auto_rule = &kAutoReduceBucket,
           .unit = "elements"},
          zero.reduce_bucket_size);
  v.field({.key = "allgather_bucket_size",
           .meaning = "elements that are gathered together",
           .range = kNotNegative,
           .auto_is_default = true,
           .unit = "elements"},
          zero.allgather_bucket_size);
  v.field({.key = "overlap_comm",
           .meaning = "communicate beside computing; unset: at stage 3",
           .auto_is_default = true,
           .unset = zero.overlaps() ? "true" : "false"},
          zero.overlap_comm);
  v.field({.key = "contiguous_gradients",
           .meaning = "gradients of a bucket lie together (sifr: always)",
           .auto_is_default = true},
          zero.contiguous_gradients);
  v.field({.key = "reduce_scatter",
           .meaning = "reduce to the owner alone (sifr: always)",
           .auto_is_default = true},
          zero.reduce_scatter);
  v.field({.key = "sub_group_size",
           .meaning = "elements that a thread updates at a time, in steps of 256; 0 and what is "
                      "larger count as 32768",
           .range = kNotNegative,
           .auto_is_default = true,
           .unit = "elements"},
          zero.sub_group_size);
  const bool is_whole = zero.stage < 3;  // what follows has no effect then, whatever its "auto" is
  v.field({.key = "stage3_prefetch_bucket_size",
           .meaning = "elements gathered ahead of their use, and the rest of the unit that crosses "
                      "it; 0: none",
           .range = kNotNegative,
           .auto_rule = &kAutoPrefetchBucket,
           .auto_is_default = is_whole,
           .unit = "elements"},
          zero.stage3_prefetch_bucket_size);
  v.field({.key = "stage3_param_persistence_threshold",
           .meaning = "units of at most so many elements stay whole",
           .range = kNotNegative,
           .auto_rule = &kAutoPersistence,
           .auto_is_default = is_whole,
           .unit = "elements"},
          zero.stage3_param_persistence_threshold);
  v.field({.key = "stage3_model_persistence_threshold",
           .meaning = "elements that may stay whole in all",
           .range = kNotNegative,
           .auto_is_default = true,
           .unit = "elements"},
          zero.stage3_model_persistence_threshold);
  v.field({.key = "stage3_max_live_parameters",
           .meaning = "elements that may be whole at a time",
           .range = kNotNegative,
           .auto_is_default = true,
           .unit = "elements"},
          zero.stage3_max_live_parameters);
  v.field({.key = "stage3_max_reuse_distance",
           .meaning = "keep what is used again within so many elements",
           .range = kNotNegative,
           .auto_is_default = true,
           .unit = "elements"},
          zero.stage3_max_reuse_distance);
}

template <class Visitor, class S>
void visit_sifr(Visitor& v, S& own) {
  v.field({"strict", "unknown keys are an error, or only warned of"}, own.strict);
  v.field({"seed", "of initial values and all randomness", kNotNegative}, own.seed);
  v.field({"reduce_at",
           "reduce gradients after each micro_batch, or once at the boundary (stages 0 and 1)"},
          own.reduce_at);
  v.field({.key = "comm_timeout",
           .meaning = "seconds that a rank waits for the others",
           .range = kPositive,
           .unit = "s"},
          own.comm_timeout);
  v.field({.key = "non_finite",
           .meaning = "stop or skip at a NaN or infinite gradient; unset: bf16 skips, fp32 stops",
           .unset = "skip in bf16, stop in fp32"},
          own.non_finite);
  v.field({"debug",
           "weights outside leases, and gradients that are reduced or not yet leased, read as NaN"},
          own.debug);
}

template <class Visitor, class C>
void visit_config(Visitor& v, C& config) {
  visit_batch(v, config);
  visit_training(v, config);
  v.optional_group({"optimizer", R"({"type": "AdamW", "params": {"lr": 1e-3}})"},
                   config.optimizer,
                   [](auto& g, auto& optimizer) { visit_optimizer(g, optimizer); });
  v.optional_group({"scheduler", R"({"type": "WarmupLR", "params": {"warmup_num_steps": 100}})"},
                   config.scheduler,
                   [](auto& g, auto& scheduler) { visit_scheduler(g, scheduler); });
  visit_precision(v, config);
  v.group({"zero_optimization", R"({"stage": 3})", true},
          [&](auto& g) { visit_zero(g, config.zero_optimization); });
  v.group({"sifr", R"({"seed": 1})"}, [&](auto& g) { visit_sifr(g, config.sifr); });
}

}  // namespace sifr::detail
