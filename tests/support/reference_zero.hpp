#pragma once

// The plain reference of a ZeRO training step: one process, loops over ranks, no sharding at all.
// It shares no source with the engine, so that equal bits mean that two programs agree, and follows
// docs/numerics.md line by line.
#include <cstdint>
#include <string>
#include <vector>

namespace sifr::test {

struct ReferenceParameter {
  std::string name = {};
  std::vector<float> master = {};  // fp32
  bool trainable = true;
  bool decay = true;
  float lr_scale = 1;
  bool is_bf16 = false;           // the weights' dtype, else fp32
  bool is_gradient_bf16 = false;  // the gradients' dtype, else fp32
};

struct ReferenceOptions {
  double clip = 1;  // 0: off
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool is_decoupled = true;  // AdamW; else L2
  bool has_bias_correction = true;
  bool is_wire_bf16 = false;  // communication_data_type narrower than fp32 gradients
  bool reduces_at_boundary = false;
};

/// gradients[micro_batch][rank][parameter] = values in the parameter's order; empty: that rank
/// never leased its unit.
using ReferenceGradients = std::vector<std::vector<std::vector<std::vector<float>>>>;

struct ReferenceReport {
  double gradient_norm = 0;
  double lr = 0;
  bool is_updated = true;  // false: a gradient is not finite, nothing has changed
};

class ReferenceZero {
 public:
  ReferenceZero(std::vector<ReferenceParameter> parameters, const ReferenceOptions& options);

  /// One update. `total_weight`: sum over ranks and micro-batches; 0 stands for 1 each.
  ReferenceReport step(const ReferenceGradients& gradients, double lr, double total_weight = 0);

  [[nodiscard]] const std::vector<float>& master(std::size_t parameter) const {
    return parameters_[parameter].master;
  }
  /// What the model reads, as fp32.
  [[nodiscard]] std::vector<float> weight(std::size_t parameter) const;

 private:
  [[nodiscard]] std::vector<float> sent(const std::vector<float>& own, std::size_t p) const;
  [[nodiscard]] std::vector<float> sum_each_micro_batch(const ReferenceGradients& gradients,
                                                        std::size_t p) const;
  [[nodiscard]] std::vector<float> sum_at_boundary(const ReferenceGradients& gradients,
                                                   std::size_t p) const;
  void update(std::size_t p, const std::vector<float>& sum, float factor, double group_lr);

  std::vector<ReferenceParameter> parameters_;
  ReferenceOptions options_;
  std::vector<std::vector<float>> m_;
  std::vector<std::vector<float>> v_;
  std::int64_t updates_ = 0;
};

}  // namespace sifr::test
