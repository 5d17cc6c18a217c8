#include "examples/llama/cross_entropy.hpp"

#include "examples/llama/vector_math.hpp"

#include <algorithm>
#include <cmath>

namespace llama {
namespace {

/// Elements summed in fp32 before their sum goes to fp64.
constexpr std::int64_t kStretch = 2048;

template <class T>
LLAMA_INLINE double sum_of_exps(const T* logits, std::int64_t vocab, float largest) {
  double sum = 0;
  for (std::int64_t first = 0; first < vocab; first += kStretch) {
    const T* stretch = logits + first;
    const std::int64_t count = std::min(kStretch, vocab - first);
    sum += static_cast<double>(
        sum_in_lanes(count, [=](std::int64_t i) { return fast_exp(widen(stretch[i]) - largest); }));
  }
  return sum;
}

template <class T>
LLAMA_INLINE double forward(const T* logits,
                            std::span<const std::int32_t> targets,
                            std::int64_t vocab,
                            SoftmaxRow* rows) {
  double loss = 0;
  for (const std::int32_t target : targets) {
    const float largest = largest_in_lanes(vocab, [=](std::int64_t i) { return widen(logits[i]); });
    const double sum = sum_of_exps(logits, vocab, largest);
    loss +=
        std::log(sum) + static_cast<double>(largest) - static_cast<double>(widen(logits[target]));
    *rows++ = {largest, static_cast<float>(1 / sum)};
    logits += vocab;
  }
  return loss;
}

template <class T>
LLAMA_INLINE void backward(T* __restrict logits,
                           std::span<const std::int32_t> targets,
                           std::int64_t vocab,
                           const SoftmaxRow* rows,
                           float scale) {
  for (const std::int32_t target : targets) {
    const float factor = rows->inverse_sum * scale;
    const float largest = rows->largest;
    const float at_target = fast_exp(widen(logits[target]) - largest) * rows->inverse_sum - 1.0F;
    for (std::int64_t i = 0; i < vocab; ++i)
      logits[i] = narrow<T>(fast_exp(widen(logits[i]) - largest) * factor);
    logits[target] = narrow<T>(at_target * scale);
    logits += vocab;
    ++rows;
  }
}

LLAMA_CLONES double forward_fp32(const float* logits,
                                 std::span<const std::int32_t> targets,
                                 std::int64_t vocab,
                                 SoftmaxRow* rows) {
  return forward(logits, targets, vocab, rows);
}
LLAMA_CLONES double forward_bf16(const bfloat16* logits,
                                 std::span<const std::int32_t> targets,
                                 std::int64_t vocab,
                                 SoftmaxRow* rows) {
  return forward(logits, targets, vocab, rows);
}
LLAMA_CLONES void backward_fp32(float* logits,
                                std::span<const std::int32_t> targets,
                                std::int64_t vocab,
                                const SoftmaxRow* rows,
                                float scale) {
  backward(logits, targets, vocab, rows, scale);
}
LLAMA_CLONES void backward_bf16(bfloat16* logits,
                                std::span<const std::int32_t> targets,
                                std::int64_t vocab,
                                const SoftmaxRow* rows,
                                float scale) {
  backward(logits, targets, vocab, rows, scale);
}

}  // namespace

template <>
double cross_entropy(const float* logits,
                     std::span<const std::int32_t> targets,
                     std::int64_t vocab,
                     SoftmaxRow* rows) {
  return forward_fp32(logits, targets, vocab, rows);
}
template <>
double cross_entropy(const bfloat16* logits,
                     std::span<const std::int32_t> targets,
                     std::int64_t vocab,
                     SoftmaxRow* rows) {
  return forward_bf16(logits, targets, vocab, rows);
}

template <>
void cross_entropy_backward(float* logits,
                            std::span<const std::int32_t> targets,
                            std::int64_t vocab,
                            const SoftmaxRow* rows,
                            float scale) {
  backward_fp32(logits, targets, vocab, rows, scale);
}
template <>
void cross_entropy_backward(bfloat16* logits,
                            std::span<const std::int32_t> targets,
                            std::int64_t vocab,
                            const SoftmaxRow* rows,
                            float scale) {
  backward_bf16(logits, targets, vocab, rows, scale);
}

}  // namespace llama
