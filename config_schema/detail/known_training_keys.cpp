#include "config_schema/detail/known_keys.hpp"

// Batch, optimizer, precision and sifr's own keys to come.

namespace sifr::detail {
namespace {

using enum KeyType;
using enum Verdict;

// A table, a key a line.
// clang-format off
constexpr KnownKey kTrainingKeys[] = {
    {"/managed_gradient_accumulation", kBool, "true", kNotSupported, "pass StepOptions::boundary to step() instead"},
    {"/dump_state", kBool, "false", kNoEffect, "the start screen shows the effective config"},
    {"/wall_clock_breakdown", kBool, "false", kNoEffect, "no timers yet"},
    {"/memory_breakdown", kBool, "false", kNoEffect, "the memory table is always there"},
    {"/prescale_gradients", kBool, "false", kNoEffect, "gradients are summed in fp32 and scaled once"},
    {"/gradient_predivide_factor", kNumber, "1.0", kNoEffect, "gradients are summed in fp32 and scaled once"},
    {"/gradient_allreduce_op", kText, "\"mean\"", kNotSupported, "only \"mean\""},
    {"/seq_parallel_communication_data_type", kText, "\"fp32\"", kNotSupported, "sequence parallelism"},
    {"/sparse_gradients", kBool, "false", kNoEffect, "gradients are dense"},
    {"/disable_allgather", kBool, "false", kNoEffect, "a switch of the past"},
    {"/graph_harvesting", kBool, "false", kNoEffect, "CUDA graphs of the optimizer"},
    {"/vocabulary_size", kInteger, "null", kNoEffect, "a hint for tensor cores"},
    {"/dataloader_drop_last", kBool, "false", kNoEffect, "the trainer loads the data"},
    {"/log_level", kText, "null", kNoEffect, "set the level of the log sink"},
    {"/use_data_before_expert_parallelism", kBool, "false", kNotSupported, "expert parallelism"},
    {"/zero_allow_untested_optimizer", kBool, "false", kNoEffect, "every optimizer may be used at every stage"},
    {"/zero_force_ds_cpu_optimizer", kBool, "true", kNoEffect, "every optimizer may be offloaded"},
    {"/sequence_parallel_size", kInteger, "1", kNotSupported, "sequence parallelism"},
    {"/data_parallel_size", kInteger, "null", kNoEffect, "all ranks are data-parallel"},
    {"/optimizer/legacy_fusion", kBool, "false", kNoEffect, "there is one fused optimizer"},
    {"/optimizer/params/torch_adam", kBool, "false", kNoEffect, "there is one Adam"},
    {"/optimizer/params/fused", kBool, "true", kNoEffect, "Adam is always fused"},
    {"/optimizer/params/foreach", kBool, "false", kNoEffect, "Adam is always fused"},
    {"/optimizer/params/amsgrad", kBool, "false", kNotSupported, "AMSGrad"},
    {"/optimizer/params/max_grad_norm", kNumber, "0", kNotSupported, "write the norm as gradient_clipping"},
    {"/scheduler/params/last_batch_iteration", kInteger, "-1", kNoEffect, "the engine counts updates"},
    {"/data_types", kBlock, "", kNoEffect, ""},
    {"/data_types/grad_accum_dtype", kText, "\"fp32\"", kNotSupported, "gradients are accumulated in fp32"},
    {"/data_types/param_dtype", kText, "null", kNotSupported, "weights take their dtype from bf16.enabled"},
    {"/data_types/buffer_dtype", kText, "null", kNoEffect, "there are no buffers beside parameters"},
    {"/fp16/auto_cast", kBool, "false", kQuiet, "cast inputs to half"},
    {"/fp16/loss_scale", kNumber, "0", kQuiet, "0: dynamic"},
    {"/fp16/initial_scale_power", kInteger, "16", kQuiet, "first loss scale, as a power of 2"},
    {"/fp16/loss_scale_window", kInteger, "1000", kQuiet, "good steps before the scale doubles"},
    {"/fp16/hysteresis", kInteger, "2", kQuiet, "overflows before the scale halves"},
    {"/fp16/consecutive_hysteresis", kBool, "false", kQuiet, "refill hysteresis after a good step"},
    {"/fp16/min_loss_scale", kNumber, "1", kQuiet, "smallest loss scale"},
    {"/fp16/fp16_master_weights_and_grads", kBool, "false", kNotSupported, "masters are fp32"},
    {"/bf16/immediate_grad_update", kBool, "false", kNoEffect, "gradients are summed after each micro-batch"},
    {"/bf16/bf16_master_weights_and_grads", kBool, "false", kNotSupported, "masters are fp32"},
    {"/bf16/bf16_optimizer_states", kBool, "false", kNotSupported, "moments are fp32"},
    {"/amp", kBlock, "enabled", kNotSupported, R"({"enabled": true})"},
    {"/amp/enabled", kBool, "false", kNotSupported, "mixed precision by NVIDIA Apex; use bf16"},
    {"/amp/opt_level", kText, "null", kQuiet, "level of Apex"},
    {"/amp/loss_scale", kAny, "null", kQuiet, "loss scale of Apex"},
    {"/torch_autocast", kBlock, "enabled", kNotSupported, R"({"enabled": true})"},
    {"/torch_autocast/enabled", kBool, "false", kNotSupported, "autocast of PyTorch; use bf16"},
    {"/torch_autocast/dtype", kText, "null", kQuiet, "dtype of autocast"},
    {"/torch_autocast/lower_precision_safe_modules", kList, "null", kQuiet, "modules of PyTorch"},
    {"/sifr/reductions", kText, "\"exact\"", kNotSupported, "sums are in rank order"},
    {"/sifr/memory_limits", kBlock, "*", kNotSupported, "limits on memory"},
    {"/sifr/master", kText, "\"whole\"", kNotSupported, "masters in two halves"},
    {"/sifr/moments", kText, "\"fp32\"", kNotSupported, "moments of 16 or 8 bits"},
    {"/sifr/stochastic_rounding", kBool, "false", kNotSupported, "rounding at random"},
    {"/sifr/overlap_step", kBool, "false", kNotSupported, "a step beside the next forward"},
    {"/sifr/gradients", kAny, "null", kNotSupported, "export of gradients"},
    {"/sifr/probe", kAny, "null", kNotSupported, "probes of the machine"},
};
// clang-format on

}  // namespace

std::span<const KnownKey> known_training_keys() {
  return kTrainingKeys;
}

}  // namespace sifr::detail
