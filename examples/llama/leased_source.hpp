#pragma once

#include "examples/llama/block.hpp"
#include "examples/llama/head.hpp"
#include "sifr.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace llama {

/// Where a Transformer finds weights and gradients when it trains on the engine: every piece is a
/// lease, which ends with the returned object.
template <class T>
class LeasedSource {
 public:
  /// `units`: in the order of units_of(shape).
  LeasedSource(sifr::Engine& engine, const std::vector<sifr::Unit>& units, bool is_tied)
      : engine_(engine), units_(units), is_tied_(is_tied) {}

  struct Embedding {
    sifr::Weights lease;
    const T* table;
  };
  [[nodiscard]] Embedding embedding() {
    sifr::Weights lease = engine_.weights(units_.front());
    const T* table = lease.data<T>(0);
    return {std::move(lease), table};
  }

  struct Block {
    sifr::Weights lease;
    BlockWeights<T> weights;
  };
  [[nodiscard]] Block block(std::int64_t index) {
    sifr::Weights lease = engine_.weights(block_unit(index));
    BlockWeights<T> weights;
    for (int i = 0; i < kBlockParameters; ++i)
      weights.data[i] = lease.data<T>(i);
    return {std::move(lease), weights};
  }

  struct Head {
    sifr::Weights lease;
    std::optional<sifr::Weights> embedding;  // tied: the matrix is its
    HeadWeights<T> weights;
  };
  [[nodiscard]] Head head() {
    Head head = {engine_.weights(units_.back()), {}, {}};
    head.weights.norm = head.lease.template data<T>(0);
    if (is_tied_) head.embedding.emplace(engine_.weights(units_.front()));
    head.weights.matrix =
        is_tied_ ? head.embedding->template data<T>(0) : head.lease.template data<T>(1);
    return head;
  }

  struct EmbeddingGradients {
    sifr::Gradients lease;
    T* table;
  };
  [[nodiscard]] EmbeddingGradients embedding_gradients() {
    sifr::Gradients lease = engine_.gradients(units_.front());
    T* table = lease.data<T>(0);
    return {std::move(lease), table};
  }

  struct BlockGradientsLease {
    sifr::Gradients lease;
    BlockGradients<T> gradients;
  };
  [[nodiscard]] BlockGradientsLease block_gradients(std::int64_t index) {
    sifr::Gradients lease = engine_.gradients(block_unit(index));
    BlockGradients<T> gradients;
    for (int i = 0; i < kBlockParameters; ++i)
      gradients.data[i] = lease.data<T>(i);
    return {std::move(lease), gradients};
  }

  struct HeadGradientsLease {
    sifr::Gradients lease;
    std::optional<sifr::Gradients> embedding;
    HeadGradients<T> gradients;
  };
  /// Tied: the embedding's first gradients lease of the micro-batch, so that its matrix may be
  /// written.
  [[nodiscard]] HeadGradientsLease head_gradients() {
    HeadGradientsLease head = {engine_.gradients(units_.back()), {}, {}};
    head.gradients.norm = head.lease.template data<T>(0);
    if (is_tied_) head.embedding.emplace(engine_.gradients(units_.front()));
    head.gradients.matrix =
        is_tied_ ? head.embedding->template data<T>(0) : head.lease.template data<T>(1);
    return head;
  }

 private:
  [[nodiscard]] sifr::Unit block_unit(std::int64_t index) const {
    return units_[1 + static_cast<std::size_t>(index)];
  }

  sifr::Engine& engine_;
  const std::vector<sifr::Unit>& units_;
  bool is_tied_;
};

}  // namespace llama
