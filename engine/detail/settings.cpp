#include "engine/detail/settings.hpp"

#include "device/detail/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace sifr::detail {

namespace {

constexpr Purpose kPlanned[] = {Purpose::kWeights,
                                Purpose::kGradients,
                                Purpose::kOptimizer,
                                Purpose::kWindow,
                                Purpose::kBucket};

DType to_dtype(WireDType dtype) {
  switch (dtype) {
    case WireDType::kBf16:
      return DType::kBFloat16;
    case WireDType::kFp16:
      return DType::kFloat16;
    case WireDType::kFp32:
      break;
  }
  return DType::kFloat32;
}

std::int64_t count_of(const Parameter& parameter) {
  std::int64_t count = 1;
  for (const std::int64_t extent : parameter.shape) {
    SIFR_REQUIRE(UsageError,
                 extent >= 0,
                 "parameter '{}': an extent of its shape is {}",
                 parameter.name,
                 extent);
    SIFR_REQUIRE(UsageError,
                 extent == 0 || count <= std::numeric_limits<std::int64_t>::max() / 64 / extent,
                 "parameter '{}': its shape has too many elements",
                 parameter.name);
    count *= extent;
  }
  return count;
}

ParameterSpec make_parameter_spec(const Parameter& parameter, DType compute_dtype) {
  ParameterSpec spec;
  spec.name = parameter.name;
  spec.shape = parameter.shape;
  spec.count = count_of(parameter);
  spec.weights = parameter.keep_fp32 ? DType::kFloat32 : compute_dtype;
  spec.gradients = parameter.fp32_gradient ? DType::kFloat32 : spec.weights;
  spec.trainable = parameter.trainable;
  spec.decay = parameter.decay;
  spec.lr_scale = parameter.lr_scale;
  SIFR_REQUIRE(UsageError,
               spec.lr_scale >= 0 && std::isfinite(spec.lr_scale),
               "parameter '{}': lr_scale is {}, and must be 0 or more and finite",
               spec.name,
               spec.lr_scale);
  return spec;
}

}  // namespace

DType compute_dtype(const Config& config) {
  return config.bf16.enabled ? DType::kBFloat16 : DType::kFloat32;
}

ZeroOptions make_zero_options(const Config& config) {
  const ZeroConfig& zero = config.zero_optimization;
  ZeroOptions options;
  options.stage = static_cast<int>(zero.stage);
  options.overlap = zero.overlaps();
  options.reduce_at_boundary = config.sifr.reduce_at == ReduceAt::kBoundary;
  options.poison = config.sifr.debug;
  if (config.communication_data_type == WireDType::kFp16) {
    throw config_error(
        config,
        "/communication_data_type",
        "fp16 travels only in fp16 training, which is not there yet: use bf16 or fp32");
  }
  if (config.communication_data_type) options.wire = to_dtype(*config.communication_data_type);
  options.reduce_bucket = zero.reduce_bucket_size;
  options.gather_bucket = zero.allgather_bucket_size;
  options.chunk = zero.sub_group_size;
  options.prefetch = zero.stage3_prefetch_bucket_size;
  options.persistence = zero.stage3_param_persistence_threshold;
  options.model_persistence = zero.stage3_model_persistence_threshold;
  options.max_live = zero.stage3_max_live_parameters;
  options.max_reuse_distance = zero.stage3_max_reuse_distance;
  return options;
}

AdamOptions make_adam_options(const Config& config) {
  AdamOptions options;
  if (!config.optimizer) return options;
  options.betas = config.optimizer->betas;
  options.eps = config.optimizer->eps;
  options.weight_decay = config.optimizer->weight_decay;
  options.decoupled = config.optimizer->is_decoupled();
  options.bias_correction = config.optimizer->bias_correction;
  return options;
}

std::vector<UnitSpec> make_unit_specs(const std::vector<Units::Declared>& declared,
                                      DType compute_dtype) {
  SIFR_REQUIRE(
      UsageError, !declared.empty(), "the model declares no unit: add at least one in declare()");
  std::set<std::string> names;
  std::vector<UnitSpec> specs;
  for (const Units::Declared& unit : declared) {
    UnitSpec spec{.name = unit.name, .parameters = {}, .gradient_leases = unit.gradient_leases};
    for (const Parameter& parameter : unit.parameters) {
      SIFR_REQUIRE(UsageError,
                   names.insert(parameter.name).second,
                   "two parameters are named '{}', the second in unit '{}'",
                   parameter.name,
                   unit.name);
      spec.parameters.push_back(make_parameter_spec(parameter, compute_dtype));
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::string start_screen(const Config& config,
                         const BatchPlan& batch,
                         const Layout& layout,
                         const MemoryPlan& plan,
                         const std::string& group) {
  std::int64_t parameters = 0;
  for (const UnitLayout& unit : layout.units())
    parameters += unit.elements;
  std::string text = fmt::format("ZeRO stage {}, {} weights, {} parameters in {} units\n{}\n",
                                 config.zero_optimization.stage,
                                 name_of(compute_dtype(config)),
                                 parameters,
                                 layout.unit_count(),
                                 group);
  text += fmt::format("{} samples a step = {} a micro-batch x {} accumulated x {} ranks\n",
                      batch.train,
                      batch.micro,
                      batch.accumulation,
                      layout.group_size());
  const bool may_reduce_once = config.zero_optimization.stage < 2 && layout.group_size() > 1;
  if (may_reduce_once && batch.accumulation > 1 && config.sifr.reduce_at == ReduceAt::kMicroBatch) {
    text += fmt::format(
        "\"sifr\": {{\"reduce_at\": \"boundary\"}} would send 1/{} of the gradients, with other "
        "rounding\n",
        batch.accumulation);
  }
  text += describe(config);
  if (!text.ends_with('\n')) text += '\n';
  text += "planned memory of this rank, without the model's activations:\n";
  for (const Purpose purpose : kPlanned) {
    if (plan.of(purpose) > 0)
      text += fmt::format("  {:<12}{:>16}\n", name_of(purpose), mib(plan.of(purpose)));
  }
  return text + fmt::format("  {:<12}{:>16}", "sum", mib(plan.total()));
}

}  // namespace sifr::detail
