#pragma once

#include "examples/llama/block.hpp"

#include <span>

/// The end of the model: norm, projection onto the vocabulary, cross-entropy.
namespace llama {

template <class Element>
struct HeadPointers {
  Element* norm = nullptr;    // [hidden]
  Element* matrix = nullptr;  // [vocab][hidden]
};
template <class T>
using HeadWeights = HeadPointers<const T>;
/// The matrix is written, the norm is added to.
template <class T>
using HeadGradients = HeadPointers<T>;

template <class T>
struct HeadKept {
  T* input = nullptr;            // [tokens][hidden]: the last block's output
  float* inverse_rms = nullptr;  // [tokens]
  T* normed = nullptr;           // [tokens][hidden]
  T* logits = nullptr;           // [tokens][vocab]; used up by backward
  SoftmaxRow* rows = nullptr;    // [tokens]
};
template <class T>
[[nodiscard]] HeadKept<T> carve_head_kept(Carver& carver,
                                          const LlamaShape& shape,
                                          const Extent& extent);

/// Writes kept.logits.
template <class T>
void head_logits(const BlockContext<T>& context,
                 const HeadWeights<T>& weights,
                 const HeadKept<T>& kept);

/// Σ of the losses of kept.logits.
template <class T>
[[nodiscard]] double head_loss(const BlockContext<T>& context,
                               const HeadKept<T>& kept,
                               std::span<const std::int32_t> targets);

/// After head_loss. `scale`: d(objective)/d(sum of losses). Writes the gradient of kept.input into
/// `stream`.
template <class T>
struct HeadBackward {
  std::span<const std::int32_t> targets;
  float scale = 1;
  T* stream = nullptr;
};
template <class T>
void head_backward(const BlockContext<T>& context,
                   const HeadWeights<T>& weights,
                   const HeadKept<T>& kept,
                   const HeadGradients<T>& gradients,
                   const HeadBackward<T>& pass);

}  // namespace llama
