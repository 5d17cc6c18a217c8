#pragma once

// A training loop without the engine, in plain lines: gradients of micro-batches are added in fp32,
// averaged and clipped; AdamW works on fp32 masters, which are then rounded to the weights.
#include "examples/llama/element.hpp"
#include "examples/llama/plain_source.hpp"
#include "examples/llama/transformer.hpp"
#include "tests/llama/tiny_llama.hpp"

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace llama::test {

struct AdamW {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  double clipping = 1;
};

template <class T>
class PlainTraining {
 public:
  /// Masters start as the exact values of `initial`, one span per parameter.
  PlainTraining(const LlamaShape& shape, const Extent& extent, const TransformerOptions& options);

  [[nodiscard]] PlainModel<T>& model() { return model_; }
  [[nodiscard]] Transformer<T>& transformer() { return transformer_; }
  void set(std::size_t parameter, std::span<const float> values);
  [[nodiscard]] const std::vector<float>& master(std::size_t parameter) const {
    return masters_[parameter];
  }

  /// Forward and backward of one micro-batch into model().gradients.
  double run(const TokenBatch& batch);
  /// One update from several micro-batches; the loss before it and the norm before clipping.
  StepFacts step(std::span<const TokenBatch> micro_batches, const AdamW& adam);

 private:
  void add_gradients();
  double mean_norm(double micro_batches) const;
  void update(std::size_t parameter, double factor, const AdamW& adam);

  PlainModel<T> model_;
  std::vector<std::byte> memory_;
  Transformer<T> transformer_;
  std::vector<std::vector<float>> masters_;
  std::vector<std::vector<float>> sums_;
  std::vector<std::vector<float>> m_;
  std::vector<std::vector<float>> v_;
  int updates_ = 0;
};

extern template class PlainTraining<float>;
extern template class PlainTraining<sifr::bfloat16>;

}  // namespace llama::test
