#pragma once

#include "examples/llama/attention_rows.hpp"
#include "examples/llama/extent.hpp"
#include "examples/llama/matmul.hpp"
#include "examples/llama/rotary.hpp"
#include "examples/llama/shape.hpp"

/// Causal attention with grouped queries (Ainslie et al., 2023) and rotary positions, in blocks of
/// query positions, so that no length × length matrix is ever kept: the way back computes a block's
/// scores once more. Softmax is in fp32, probabilities are rounded to T.
///
///   queries       [row][key head][position][head of the group][element]
///   keys, values  [row][key head][position][element]
///
/// One key head's block of queries, of all heads of its group, is one matrix.
namespace llama {

/// What the way back needs of the way there.
template <class T>
struct AttentionKept {
  T* queries = nullptr;  // turned
  T* keys = nullptr;     // turned
  T* values = nullptr;
  SoftmaxRow* stats = nullptr;  // [row][key head][position][head of the group]
  T* output = nullptr;          // [row][position][head][element]
};

/// Memory that lives for one call.
template <class T>
struct AttentionScratch {
  float* scores = nullptr;           // [block rows][length]
  float* d_probabilities = nullptr;  // [block rows][length]
  T* probabilities = nullptr;        // [block rows][length]
  T* d_scores = nullptr;             // [block rows][length]
  T* d_output = nullptr;             // [length][group][head_size]
  float* d_queries = nullptr;        // [length][group][head_size]; in forward the output
  float* d_keys = nullptr;           // [length][head_size]
  float* d_values = nullptr;         // [length][head_size]
  float* dots = nullptr;             // [length][group]
};

template <class T>
[[nodiscard]] AttentionKept<T> carve_attention_kept(Carver& carver,
                                                    const LlamaShape& shape,
                                                    const Extent& extent);
template <class T>
[[nodiscard]] AttentionScratch<T> carve_attention_scratch(Carver& carver,
                                                          const LlamaShape& shape,
                                                          std::int64_t length);

template <class T>
struct AttentionContext {
  const LlamaShape& shape;
  Extent extent;
  MatrixProducts& products;
  const RotaryTable& rotary;  // of at least extent.length positions
  const AttentionScratch<T>& scratch;
};

/// Projections before positions are turned in; [row][position][head][element].
template <class T>
struct Projections {
  T* queries = nullptr;
  T* keys = nullptr;
  T* values = nullptr;
};

template <class T>
void attention(const AttentionContext<T>& context,
               const Projections<T>& projections,
               const AttentionKept<T>& kept);

/// Writes the gradients of the projections.
template <class T>
void attention_backward(const AttentionContext<T>& context,
                        const AttentionKept<T>& kept,
                        const T* d_output,
                        const Projections<T>& gradients);

}  // namespace llama
