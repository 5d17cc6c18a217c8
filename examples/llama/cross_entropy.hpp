#pragma once

#include <cstdint>
#include <span>

namespace llama {

/// What a row of logits is normalised by: softmax(l)ᵢ = e^(lᵢ − largest) · inverse_sum.
struct SoftmaxRow {
  float largest = 0;
  float inverse_sum = 0;
};

/// Σ over rows of −log softmax(logits[row])[targets[row]], in fp64; fills rows[row] for the way
/// back.
template <class T>
[[nodiscard]] double cross_entropy(const T* logits,
                                   std::span<const std::int32_t> targets,
                                   std::int64_t vocab,
                                   SoftmaxRow* rows);

/// logits become their gradient: (softmax − one at the target) · scale.
template <class T>
void cross_entropy_backward(T* logits,
                            std::span<const std::int32_t> targets,
                            std::int64_t vocab,
                            const SoftmaxRow* rows,
                            float scale);

}  // namespace llama
