#pragma once

#include "examples/llama/cross_entropy.hpp"
#include "examples/llama/rotary.hpp"

#include <cmath>
#include <cstdint>

/// The row-wise part of causal attention between its matrix products. Row r of a block belongs to
/// position first_position + r / group and sees the keys up to that position; the scores of later
/// keys are computed and ignored.
namespace llama {

struct AttentionBlock {
  std::int64_t first_position = 0;
  std::int64_t rows = 0;
  std::int64_t keys = 0;   // columns: positions [0, keys)
  std::int64_t group = 1;  // query heads of one key head
  float scale = 1;         // of the scores: attention_scale
};

/// 1 / √head_size
[[nodiscard]] inline float attention_scale(std::int64_t head_size) noexcept {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(head_size)));
}

/// probabilities[rows][keys] = softmax(scores · scale) over the visible keys, 0 behind them;
/// `stats` is kept per row. The scores are scratch afterwards.
template <class T>
void attention_softmax(float* scores,
                       const AttentionBlock& block,
                       T* probabilities,
                       SoftmaxRow* stats);

template <class T>
struct AttentionSoftmaxBackward {
  const float* scores = nullptr;           // [rows][keys], as in forward
  const float* d_probabilities = nullptr;  // [rows][keys]
  const SoftmaxRow* stats = nullptr;       // [rows]
  const float* dots = nullptr;             // [rows]: Σ output · d_output, which is Σ p · dp
  T* probabilities = nullptr;              // once more
  T* d_scores = nullptr;                   // p · (dp − dot) · scale
};
template <class T>
void attention_softmax_backward(const AttentionSoftmaxBackward<T>& pass,
                                const AttentionBlock& block);

/// dots[position · count + head] = Σ a · b over the head's elements; a and b lie as a HeadGroup's
/// `tokens`.
template <class T>
void head_dots(const T* a, const T* b, const HeadGroup& group, float* dots);

}  // namespace llama
