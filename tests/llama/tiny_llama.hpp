#pragma once

// The tiny Llama whose numbers transformers computed: tests/llama/data/tiny_llama.json tells what
// they are.
#include "device/dtype.hpp"
#include "examples/llama/batch.hpp"
#include "examples/llama/shape.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace llama::test {

struct TensorFacts {
  std::string name;
  std::vector<double> first;   // the first 8 values
  std::vector<double> spread;  // the values at k·(count − 1) / 7
  double sum = 0;
  double norm = 0;
};

struct StepFacts {
  double loss = 0;
  double gradient_norm = 0;
};

/// Limits; the test says how each is applied.
struct Accept {
  double logit_absolute = 0;
  double gradient_tensor_norm_relative = 0;
  double gradient_value_per_rms = 0;
  double loss_relative = 0;
  double gradient_norm_relative = 0;
  double value_absolute = 0;
  double tensor_norm_relative = 0;
  double tensor_sum_per_root_count = 0;
};

struct Oracle {
  LlamaShape shape;
  std::vector<std::vector<std::int32_t>> micro_batches;  // rows end to end
  Extent extent;                                         // of each
  std::vector<std::vector<double>> logits;               // of the first row: [position][token]
  StepFacts backward;                                    // of the first micro-batch alone
  std::vector<TensorFacts> gradients;
  std::vector<StepFacts> float32_steps;
  std::vector<TensorFacts> float32_after;
  std::vector<StepFacts> bfloat16_steps;
  StepFacts bfloat16_spread;  // relative distances of two correct bf16 runs
  Accept accept;
};

[[nodiscard]] Oracle read_oracle();

/// A tensor of the model's file, by name.
[[nodiscard]] std::vector<sifr::bfloat16> read_weights(const std::string& name);

}  // namespace llama::test
