#pragma once

#include "examples/llama/block.hpp"
#include "examples/llama/head.hpp"
#include "examples/llama/parameters.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace llama {

/// Where a Transformer finds weights and gradients without the engine: arrays in memory of one's
/// own.
template <class T>
class PlainSource {
 public:
  /// An array per parameter, in the order of units_of(shape), unit after unit.
  struct Arrays {
    std::vector<T*> weights;
    std::vector<T*> gradients;
  };
  PlainSource(const LlamaShape& shape, Arrays arrays)
      : arrays_(std::move(arrays)), layers_(shape.layers), is_tied_(shape.tied) {}

  struct Embedding {
    const T* table;
  };
  [[nodiscard]] Embedding embedding() const { return {arrays_.weights.front()}; }
  struct Block {
    BlockWeights<T> weights;
  };
  [[nodiscard]] Block block(std::int64_t index) const {
    return {pointers<const T>(arrays_.weights, index)};
  }
  struct Head {
    HeadWeights<T> weights;
  };
  [[nodiscard]] Head head() const { return {{arrays_.weights[norm()], arrays_.weights[matrix()]}}; }

  struct EmbeddingGradients {
    T* table;
  };
  [[nodiscard]] EmbeddingGradients embedding_gradients() const {
    return {arrays_.gradients.front()};
  }
  struct BlockOfGradients {
    BlockGradients<T> gradients;
  };
  [[nodiscard]] BlockOfGradients block_gradients(std::int64_t index) const {
    return {pointers<T>(arrays_.gradients, index)};
  }
  struct HeadOfGradients {
    HeadGradients<T> gradients;
  };
  [[nodiscard]] HeadOfGradients head_gradients() const {
    return {{arrays_.gradients[norm()], arrays_.gradients[matrix()]}};
  }

 private:
  template <class Element>
  [[nodiscard]] BlockPointers<Element> pointers(const std::vector<T*>& arrays,
                                                std::int64_t index) const {
    BlockPointers<Element> block;
    for (std::int64_t i = 0; i < kBlockParameters; ++i) {
      block.data[i] = arrays[static_cast<std::size_t>(1 + index * kBlockParameters + i)];
    }
    return block;
  }
  [[nodiscard]] std::size_t norm() const {
    return static_cast<std::size_t>(1 + layers_ * kBlockParameters);
  }
  [[nodiscard]] std::size_t matrix() const { return is_tied_ ? 0 : norm() + 1; }

  Arrays arrays_;
  std::int64_t layers_;
  bool is_tied_;
};

/// Memory for a PlainSource: zeroed arrays on 512 bytes for the weights and gradients of a shape.
template <class T>
class PlainModel {
 public:
  explicit PlainModel(const LlamaShape& shape);
  [[nodiscard]] PlainSource<T> source() const { return {shape_, {weights_, gradients_}}; }
  /// All parameters, unit after unit; the spans of one parameter have its index.
  [[nodiscard]] const std::vector<NamedParameter>& parameters() const noexcept {
    return parameters_;
  }
  [[nodiscard]] std::span<T> weights(std::size_t parameter) const {
    return {weights_[parameter], counts_[parameter]};
  }
  [[nodiscard]] std::span<T> gradients(std::size_t parameter) const {
    return {gradients_[parameter], counts_[parameter]};
  }
  void zero_gradients();

 private:
  LlamaShape shape_;
  std::vector<NamedParameter> parameters_;
  std::vector<std::size_t> counts_;
  std::vector<T*> weights_;
  std::vector<T*> gradients_;
  std::vector<std::byte> memory_;
};

extern template class PlainModel<float>;
extern template class PlainModel<sifr::bfloat16>;

}  // namespace llama
