#pragma once

// What a ds_config.json may say, as types. Fields are the JSON keys, letter for letter; the
// defaults written here are the only ones, and are DeepSpeed 0.19.6's.

#include "./config_error.hpp"
#include "./hints.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sifr {

enum class WireDType : std::uint8_t { kFp32, kBf16, kFp16 };
enum class OptimizerType : std::uint8_t { kAdam, kAdamW };
enum class SchedulerType : std::uint8_t { kWarmupLR, kWarmupDecayLR, kWarmupCosineLR };
enum class WarmupType : std::uint8_t { kLog, kLinear };
enum class Strictness : std::uint8_t { kError, kWarn };
enum class ReduceAt : std::uint8_t { kMicroBatch, kBoundary };
enum class NonFinite : std::uint8_t { kStop, kSkip };

/// "optimizer": `type` beside "params", whose keys are the other fields.
struct OptimizerConfig {
  OptimizerType type = OptimizerType::kAdamW;
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool bias_correction = true;
  bool adam_w_mode = true;  ///< Adam only: false adds weight decay to the gradient (L2)

  /// Weight decay acts on the weights, not on the gradient.
  [[nodiscard]] bool is_decoupled() const { return type == OptimizerType::kAdamW || adam_w_mode; }
  bool operator==(const OptimizerConfig&) const = default;
};

/// The warmup_max_lr of a WarmupDecayLR without one; WarmupLR takes the optimizer's lr.
inline constexpr double kWarmupDecayMaxLr = 1e-3;

/// "scheduler": `type` beside "params". Steps are applied updates.
struct SchedulerConfig {
  SchedulerType type = SchedulerType::kWarmupLR;
  double warmup_min_lr = 0;              ///< not of WarmupCosineLR
  std::optional<double> warmup_max_lr;   ///< unset: the optimizer's lr (WarmupDecayLR: 0.001)
  std::int64_t warmup_num_steps = 1000;  ///< 1 counts as 2
  WarmupType warmup_type = WarmupType::kLog;
  std::optional<std::int64_t> total_num_steps;  ///< WarmupDecayLR and WarmupCosineLR need it
  double warmup_min_ratio = 0;                  ///< WarmupCosineLR: of the optimizer's lr
  double cos_min_ratio = 1e-4;                  ///< WarmupCosineLR: of the optimizer's lr
  bool operator==(const SchedulerConfig&) const = default;
};

/// "fp16": refused when enabled; known so that "auto" and a disabled block load.
struct Fp16Config {
  bool enabled = false;
  bool operator==(const Fp16Config&) const = default;
};

struct Bf16Config {
  bool enabled = false;
  bool check_grad_overflow = true;  ///< a step with a NaN or infinite gradient is skipped
  bool operator==(const Bf16Config&) const = default;
};

/// "zero_optimization". Sizes count elements, not bytes.
struct ZeroConfig {
  std::int64_t stage =
      0;  ///< 0 everything whole; 1 optimizer state, 2 gradients, 3 weights sharded
  std::int64_t reduce_bucket_size = 500'000'000;
  std::int64_t allgather_bucket_size = 500'000'000;
  std::optional<bool> overlap_comm;  ///< unset: at stage 3 only
  bool contiguous_gradients = true;
  bool reduce_scatter = true;
  std::int64_t sub_group_size = 1'000'000'000;
  std::int64_t stage3_prefetch_bucket_size = 50'000'000;
  std::int64_t stage3_param_persistence_threshold = 100'000;
  std::int64_t stage3_model_persistence_threshold = std::numeric_limits<std::int64_t>::max();
  std::int64_t stage3_max_live_parameters = 1'000'000'000;
  std::int64_t stage3_max_reuse_distance = 1'000'000'000;

  [[nodiscard]] bool overlaps() const { return overlap_comm.value_or(stage == 3); }
  bool operator==(const ZeroConfig&) const = default;
};

/// "sifr": what DeepSpeed has no key for.
struct SifrConfig {
  Strictness strict = Strictness::kError;  ///< of unknown keys
  std::int64_t seed = 1234;                ///< of initial values and of all randomness
  ReduceAt reduce_at = ReduceAt::kMicroBatch;
  double comm_timeout = 600;            ///< seconds that a rank waits for the others
  std::optional<NonFinite> non_finite;  ///< unset: bf16 skips, fp32 stops
  bool debug = false;                   ///< memory outside leases reads as NaN
  bool operator==(const SifrConfig&) const = default;
};

/// Where a value came from.
struct Origin {
  std::string from;       ///< "file" or the name of a hint
  std::int64_t line = 0;  ///< of the value, or of its "auto"; 0: not in the file
  std::int64_t column = 0;
};

struct Config {
  std::optional<std::int64_t> train_batch_size;                ///< samples per step, all ranks
  std::optional<std::int64_t> train_micro_batch_size_per_gpu;  ///< samples per rank and micro-batch
  std::optional<std::int64_t> gradient_accumulation_steps;     ///< micro-batches per step
  std::optional<std::int64_t> steps_per_print;                 ///< unset: no progress lines
  double gradient_clipping = 1.0;                              ///< L2 norm; 0 or less: none
  std::optional<WireDType> communication_data_type;  ///< of gradients; unset: the gradient's own
  std::optional<OptimizerConfig> optimizer;          ///< unset: the trainer brings its own
  std::optional<SchedulerConfig> scheduler;          ///< unset: constant lr, or the trainer's own
  Fp16Config fp16;
  Bf16Config bf16;
  ZeroConfig zero_optimization;
  SifrConfig sifr;

  std::string file_name;                  ///< for messages
  std::map<std::string, Origin> origins;  ///< by JSON pointer; a value without one is a default
  std::vector<std::string> notices;       ///< worth a line in the log: keys without effect, …
};

/// Reads a whole config. Comments (#, //, /* */) and trailing commas are allowed. Throws
/// ConfigError with everything that is wrong; `file_name` is for its messages only.
[[nodiscard]] SIFR_API Config parse_config(std::string_view json,
                                           const std::string& file_name,
                                           const Hints& hints = {});

/// parse_config of a file's content; a file that cannot be read is a ConfigError too.
[[nodiscard]] SIFR_API Config load_config(const std::filesystem::path& file,
                                          const Hints& hints = {});

/// An error about one key of a loaded config, with its place in the file.
[[nodiscard]] SIFR_API ConfigError config_error(const Config& config,
                                                const std::string& pointer,
                                                const std::string& text);

/// The effective config for people: a line per key that the file or a hint has set, and the
/// defaults.
[[nodiscard]] SIFR_API std::string describe(const Config& config);

/// The effective config as JSON; parse_config reads the same values back.
[[nodiscard]] SIFR_API std::string to_json(const Config& config);

}  // namespace sifr
