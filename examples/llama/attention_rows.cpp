#include "examples/llama/attention_rows.hpp"

#include "examples/llama/vector_math.hpp"

namespace llama {
namespace {

/// Far below every score, but finite: e^(this − largest) counts as 0 and is then masked.
constexpr float kHidden = -1e30F;

template <class T>
LLAMA_INLINE void softmax_row(float* __restrict scores,
                              std::int32_t visible,
                              std::int32_t keys,
                              float scale,
                              T* __restrict probabilities,
                              SoftmaxRow& stats) {
  const float largest = scale * largest_in_lanes(keys, [=](std::int64_t i) {
                          return static_cast<std::int32_t>(i) < visible ? scores[i] : kHidden;
                        });
  for (std::int32_t i = 0; i < keys; ++i) {
    const float e = fast_exp(scores[i] * scale - largest);
    scores[i] = i < visible ? e : 0.0F;
  }
  const float inverse = 1.0F / sum_in_lanes(keys, [=](std::int64_t i) { return scores[i]; });
  for (std::int32_t i = 0; i < keys; ++i)
    probabilities[i] = narrow<T>(scores[i] * inverse);
  stats = {largest, inverse};
}

template <class T>
LLAMA_INLINE void softmax_rows(float* scores,
                               const AttentionBlock& block,
                               T* probabilities,
                               SoftmaxRow* stats) {
  const auto keys = static_cast<std::int32_t>(block.keys);
  for (std::int64_t row = 0; row < block.rows; ++row) {
    const auto visible = static_cast<std::int32_t>(block.first_position + row / block.group + 1);
    softmax_row(scores + row * block.keys,
                visible,
                keys,
                block.scale,
                probabilities + row * block.keys,
                stats[row]);
  }
}

template <class T>
LLAMA_INLINE void backward_row(const AttentionSoftmaxBackward<T>& pass,
                               const AttentionBlock& block,
                               std::int64_t row) {
  const auto visible = static_cast<std::int32_t>(block.first_position + row / block.group + 1);
  const auto keys = static_cast<std::int32_t>(block.keys);
  const float* __restrict scores = pass.scores + row * block.keys;
  const float* __restrict d_probabilities = pass.d_probabilities + row * block.keys;
  T* __restrict probabilities = pass.probabilities + row * block.keys;
  T* __restrict d_scores = pass.d_scores + row * block.keys;
  const SoftmaxRow stats = pass.stats[row];
  const float dot = pass.dots[row];
  const float scale = block.scale;
  for (std::int32_t i = 0; i < keys; ++i) {
    const float e = fast_exp(scores[i] * scale - stats.largest) * stats.inverse_sum;
    const float p = i < visible ? e : 0.0F;
    probabilities[i] = narrow<T>(p);
    d_scores[i] = narrow<T>(p * (d_probabilities[i] - dot) * scale);
  }
}

template <class T>
LLAMA_INLINE void backward_rows(const AttentionSoftmaxBackward<T>& pass,
                                const AttentionBlock& block) {
  for (std::int64_t row = 0; row < block.rows; ++row)
    backward_row(pass, block, row);
}

template <class T>
LLAMA_INLINE void dot_rows(const T* a, const T* b, const HeadGroup& group, float* dots) {
  for (std::int64_t position = 0; position < group.length;
       ++position, a += group.stride, b += group.stride) {
    for (std::int64_t head = 0; head < group.count; ++head) {
      const T* x = a + head * group.head_size;
      const T* y = b + head * group.head_size;
      *dots++ =
          sum_in_lanes(group.head_size, [=](std::int64_t i) { return widen(x[i]) * widen(y[i]); });
    }
  }
}

LLAMA_CLONES void softmax_fp32(float* scores,
                               const AttentionBlock& block,
                               float* probabilities,
                               SoftmaxRow* stats) {
  softmax_rows(scores, block, probabilities, stats);
}
LLAMA_CLONES void softmax_bf16(float* scores,
                               const AttentionBlock& block,
                               bfloat16* probabilities,
                               SoftmaxRow* stats) {
  softmax_rows(scores, block, probabilities, stats);
}
LLAMA_CLONES void backward_fp32(const AttentionSoftmaxBackward<float>& pass,
                                const AttentionBlock& block) {
  backward_rows(pass, block);
}
LLAMA_CLONES void backward_bf16(const AttentionSoftmaxBackward<bfloat16>& pass,
                                const AttentionBlock& block) {
  backward_rows(pass, block);
}
LLAMA_CLONES void dots_fp32(const float* a, const float* b, const HeadGroup& group, float* dots) {
  dot_rows(a, b, group, dots);
}
LLAMA_CLONES void dots_bf16(const bfloat16* a,
                            const bfloat16* b,
                            const HeadGroup& group,
                            float* dots) {
  dot_rows(a, b, group, dots);
}

}  // namespace

template <>
void attention_softmax(float* scores,
                       const AttentionBlock& block,
                       float* probabilities,
                       SoftmaxRow* stats) {
  softmax_fp32(scores, block, probabilities, stats);
}
template <>
void attention_softmax(float* scores,
                       const AttentionBlock& block,
                       bfloat16* probabilities,
                       SoftmaxRow* stats) {
  softmax_bf16(scores, block, probabilities, stats);
}

template <>
void attention_softmax_backward(const AttentionSoftmaxBackward<float>& pass,
                                const AttentionBlock& block) {
  backward_fp32(pass, block);
}
template <>
void attention_softmax_backward(const AttentionSoftmaxBackward<bfloat16>& pass,
                                const AttentionBlock& block) {
  backward_bf16(pass, block);
}

template <>
void head_dots(const float* a, const float* b, const HeadGroup& group, float* dots) {
  dots_fp32(a, b, group, dots);
}
template <>
void head_dots(const bfloat16* a, const bfloat16* b, const HeadGroup& group, float* dots) {
  dots_bf16(a, b, group, dots);
}

}  // namespace llama
