#include "config_schema/detail/known_keys.hpp"

// Zero_optimization, offload and I/O.

namespace sifr::detail {
namespace {

using enum KeyType;
using enum Verdict;

// A table, a key a line.
// clang-format off
constexpr KnownKey kZeroKeys[] = {
    {"/zero_optimization/use_multi_rank_bucket_allreduce", kBool, "true", kNoEffect, "gradients go straight to their owner"},
    {"/zero_optimization/allgather_partitions", kBool, "true", kNoEffect, "weights are always gathered"},
    {"/zero_optimization/load_from_fp32_weights", kBool, "true", kNoEffect, "checkpoints come later"},
    {"/zero_optimization/elastic_checkpoint", kBool, "false", kNoEffect, "checkpoints come later"},
    {"/zero_optimization/round_robin_gradients", kBool, "false", kNoEffect, "every rank owns a slice of every unit"},
    {"/zero_optimization/ignore_unused_parameters", kBool, "true", kNoEffect, "a parameter without gradient counts as zero"},
    {"/zero_optimization/legacy_stage1", kBool, "false", kNotSupported, "use stage 1"},
    {"/zero_optimization/stage3_gather_16bit_weights_on_model_save", kBool, "false", kNoEffect, "export_weights gathers piece by piece at every stage"},
    {"/zero_optimization/stage3_module_granularity_threshold", kInteger, "0", kNoEffect, "the trainer declares its units"},
    {"/zero_optimization/stage3_use_all_reduce_for_fetch_params", kBool, "false", kNoEffect, "weights are gathered by all-gather"},
    {"/zero_optimization/stage3_allgather_sequential", kBool, "false", kNoEffect, "set stage3_prefetch_bucket_size to 0"},
    {"/zero_optimization/enable_sanity_checks", kBool, "false", kNoEffect, "use \"sifr\": {\"debug\": true}"},
    {"/zero_optimization/log_trace_cache_warnings", kBool, "false", kNoEffect, "there is no trace cache"},
    {"/zero_optimization/memory_efficient_linear", kBool, "true", kNoEffect, "the trainer writes its layers"},
    {"/zero_optimization/override_module_apply", kBool, "true", kNoEffect, "there are no PyTorch modules"},
    {"/zero_optimization/pipeline_loading_checkpoint", kBool, "false", kNoEffect, "checkpoints come later"},
    {"/zero_optimization/cpu_offload_use_pin_memory", kBool, "null", kNoEffect, "offload comes later"},
    {"/zero_optimization/offload_param", kBlock, "device", kNotSupported, R"({"device": "cpu"})"},
    {"/zero_optimization/offload_param/device", kText, "\"none\"", kNotSupported, "weights stay on the device; use \"none\""},
    {"/zero_optimization/offload_param/nvme_path", kText, "null", kQuiet, "folder of the swap files"},
    {"/zero_optimization/offload_param/buffer_count", kInteger, "5", kQuiet, "swap buffers"},
    {"/zero_optimization/offload_param/buffer_size", kInteger, "1e8", kQuiet, "elements of a swap buffer"},
    {"/zero_optimization/offload_param/max_in_cpu", kInteger, "1e9", kQuiet, "elements kept in host memory"},
    {"/zero_optimization/offload_param/pin_memory", kBool, "true", kQuiet, "pinned host memory"},
    {"/zero_optimization/offload_optimizer", kBlock, "device", kNotSupported, R"({"device": "cpu"})"},
    {"/zero_optimization/offload_optimizer/device", kText, "\"none\"", kNotSupported, "the optimizer state stays on the device; use \"none\""},
    {"/zero_optimization/offload_optimizer/nvme_path", kText, "null", kQuiet, "folder of the swap files"},
    {"/zero_optimization/offload_optimizer/buffer_count", kInteger, "4", kQuiet, "swap buffers"},
    {"/zero_optimization/offload_optimizer/pin_memory", kBool, "true", kQuiet, "pinned host memory"},
    {"/zero_optimization/offload_optimizer/pipeline", kBool, "false", kQuiet, "pipelined reads and writes"},
    {"/zero_optimization/offload_optimizer/pipeline_read", kBool, "false", kQuiet, "read ahead of the update"},
    {"/zero_optimization/offload_optimizer/pipeline_write", kBool, "false", kQuiet, "write behind the update"},
    {"/zero_optimization/offload_optimizer/fast_init", kBool, "false", kQuiet, "write masters in one batch"},
    {"/zero_optimization/offload_optimizer/ratio", kNumber, "1.0", kQuiet, "share that is updated on the host"},
    {"/zero_optimization/offload_optimizer/super_offload", kBool, "false", kQuiet, "SuperOffload"},
    {"/zero_optimization/offload_optimizer/cpuadam_cores_perc", kNumber, "0.8", kQuiet, "share of cores for SuperOffload"},
    {"/zero_optimization/zero_hpz_partition_size", kInteger, "1", kNotSupported, "ZeRO++ secondary shards; use 1"},
    {"/zero_optimization/zero_quantized_weights", kBool, "false", kNotSupported, "ZeRO++ quantized gathers"},
    {"/zero_optimization/zero_quantized_nontrainable_weights", kBool, "false", kNotSupported, "ZeRO++ quantized gathers"},
    {"/zero_optimization/zero_quantized_gradients", kBool, "false", kNotSupported, "ZeRO++ quantized gradients"},
    {"/zero_optimization/zeropp_loco_param", kBlock, "*", kNotSupported, "ZeRO++ error feedback"},
    {"/zero_optimization/mics_shard_size", kInteger, "-1", kNotSupported, "MiCS shard groups"},
    {"/zero_optimization/mics_hierarchical_params_gather", kBool, "false", kNotSupported, "MiCS gathers"},
    {"/zero_optimization/zenflow", kBlock, "*", kNotSupported, "ZenFlow updates"},
    {"/zero_optimization/leaf_module", kBlock, "", kNoEffect, ""},
    {"/zero_optimization/leaf_module/classes", kAny, "[]", kNoEffect, "the trainer declares its units"},
    {"/zero_optimization/leaf_module/names", kAny, "[]", kNoEffect, "the trainer declares its units"},
    {"/zero_optimization/leaf_module/name_suffixes", kAny, "[]", kNoEffect, "the trainer declares its units"},
    {"/zero_optimization/save_muon_momentum_buffer_in_memory", kBool, "false", kNoEffect, "Muon is not supported yet"},
    {"/aio", kBlock, "", kNoEffect, ""},
    {"/aio/block_size", kInteger, "1048576", kNoEffect, "offload to NVMe comes later"},
    {"/aio/queue_depth", kInteger, "8", kNoEffect, "offload to NVMe comes later"},
    {"/aio/intra_op_parallelism", kInteger, "1", kNoEffect, "offload to NVMe comes later"},
    {"/aio/single_submit", kBool, "false", kNoEffect, "offload to NVMe comes later"},
    {"/aio/overlap_events", kBool, "true", kNoEffect, "offload to NVMe comes later"},
    {"/aio/use_gds", kBool, "false", kNoEffect, "offload to NVMe comes later"},
};
// clang-format on

}  // namespace

std::span<const KnownKey> known_zero_keys() {
  return kZeroKeys;
}

}  // namespace sifr::detail
