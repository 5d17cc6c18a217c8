#pragma once

#include "examples/llama/activations.hpp"
#include "examples/llama/batch.hpp"
#include "examples/llama/embedding.hpp"
#include "examples/llama/matmul.hpp"
#include "examples/llama/rotary.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace llama {

struct TransformerOptions {
  int threads = 1;         // of matrix products; part of the number format
  bool recompute = false;  // keep the blocks' inputs only, compute blocks again on the way back
};

/// The whole model's forward and backward. It asks a source for weights and gradients piece by
/// piece, holds what it got as long as it computes with it, and knows nothing else of where they
/// come from:
///
///   source.embedding().table                 source.embedding_gradients().table      (added to)
///   source.block(i).weights                  source.block_gradients(i).gradients
///   source.head().weights                    source.head_gradients().gradients
///
/// On the engine these are leases (leased_source.hpp), else plain memory (plain_source.hpp).
template <class T>
class Transformer {
 public:
  /// Bytes of memory for micro-batches up to `capacity`.
  [[nodiscard]] static std::int64_t memory_bytes(const LlamaShape& shape,
                                                 const Extent& capacity,
                                                 const TransformerOptions& options);
  /// `memory`: memory_bytes(…) bytes on 512, which outlive the object.
  Transformer(const LlamaShape& shape,
              const Extent& capacity,
              const TransformerOptions& options,
              std::byte* memory);

  /// The mean loss over the micro-batch's tokens. Throws std::invalid_argument if the batch exceeds
  /// the capacity or a token the vocabulary.
  template <class Source>
  [[nodiscard]] double forward(Source& source, const TokenBatch& batch);

  /// Of the last forward. `loss_gradient`: d(objective)/d(mean loss).
  template <class Source>
  void backward(Source& source, float loss_gradient);

  /// Logits [position][vocab] of one sequence; valid until the next call.
  template <class Source>
  [[nodiscard]] std::span<const T> logits(Source& source, std::span<const std::int32_t> tokens);

  [[nodiscard]] bool fits(const Extent& extent) const noexcept {
    return extent.tokens() <= capacity_.tokens() && extent.length <= capacity_.length;
  }

 private:
  void take(const TokenBatch& batch);
  void check(const Extent& extent, std::span<const std::int32_t> tokens) const;
  [[nodiscard]] BlockContext<T> context() {
    return {shape_, extent_, products_, rotary_, activations_.scratch};
  }
  template <class Source>
  void run_blocks(Source& source);
  template <class Source>
  void head_backward_of(Source& source, float loss_gradient);
  template <class Source>
  void block_backward_of(Source& source, std::int64_t block);

  LlamaShape shape_;
  Extent capacity_;
  TransformerOptions options_;
  Activations<T> activations_;
  MatrixProducts products_;
  RotaryTable rotary_;
  EmbeddingBackward<T> embedding_backward_;
  Extent extent_;                      // of the last batch
  std::vector<std::int32_t> inputs_;   // [tokens]
  std::vector<std::int32_t> targets_;  // [tokens]
};

template <class T>
template <class Source>
double Transformer<T>::forward(Source& source, const TokenBatch& batch) {
  take(batch);
  run_blocks(source);
  const auto head = source.head();
  head_logits(context(), head.weights, activations_.head);
  return head_loss(context(), activations_.head, targets_) / static_cast<double>(extent_.tokens());
}

template <class T>
template <class Source>
void Transformer<T>::backward(Source& source, float loss_gradient) {
  head_backward_of(source, loss_gradient);
  for (std::int64_t i = shape_.layers - 1; i >= 0; --i)
    block_backward_of(source, i);
  const auto embedding = source.embedding_gradients();
  embedding_backward_.run(inputs_, activations_.stream, embedding.table);
}

template <class T>
template <class Source>
std::span<const T> Transformer<T>::logits(Source& source, std::span<const std::int32_t> tokens) {
  const Extent extent = {1, static_cast<std::int64_t>(tokens.size())};
  check(extent, tokens);
  extent_ = extent;
  inputs_.assign(tokens.begin(), tokens.end());
  run_blocks(source);
  const auto head = source.head();
  head_logits(context(), head.weights, activations_.head);
  return {activations_.head.logits, tokens.size() * static_cast<std::size_t>(shape_.vocab)};
}

template <class T>
template <class Source>
void Transformer<T>::run_blocks(Source& source) {
  embed(source.embedding().table,
        std::span<const std::int32_t>(inputs_),
        shape_.hidden,
        activations_.blocks[0].input);
  for (std::size_t i = 0; i < activations_.blocks.size(); ++i) {
    const auto block = source.block(static_cast<std::int64_t>(i));
    block_forward(context(), block.weights, activations_.blocks[i], activations_.output_of(i));
  }
}

template <class T>
template <class Source>
void Transformer<T>::head_backward_of(Source& source, float loss_gradient) {
  const auto head = source.head();
  const auto gradients = source.head_gradients();
  const float scale = loss_gradient / static_cast<float>(extent_.tokens());
  const HeadBackward<T> pass = {targets_, scale, activations_.stream};
  head_backward(context(), head.weights, activations_.head, gradients.gradients, pass);
}

template <class T>
template <class Source>
void Transformer<T>::block_backward_of(Source& source, std::int64_t block) {
  const BlockKept<T>& kept = activations_.blocks[static_cast<std::size_t>(block)];
  const auto weights = source.block(block);
  if (options_.recompute) block_again(context(), weights.weights, kept);
  const auto gradients = source.block_gradients(block);
  block_backward(context(), weights.weights, kept, gradients.gradients, activations_.stream);
}

extern template class Transformer<float>;
extern template class Transformer<sifr::bfloat16>;

}  // namespace llama
