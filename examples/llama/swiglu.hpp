#pragma once

#include <cstdint>

/// SwiGLU (Shazeer, 2020): y = silu(gate) · up, silu(g) = g / (1 + e⁻ᵍ). silu is rounded to T, as
/// in Hugging Face's model.
namespace llama {

template <class T>
void swiglu(const T* gate, const T* up, std::int64_t count, T* y);

template <class T>
struct SwigluBackward {
  const T* dy = nullptr;
  T* gate = nullptr;  // becomes its gradient
  T* up = nullptr;    // becomes its gradient
  T* y = nullptr;     // y once more, the same bits as in forward
};

template <class T>
void swiglu_backward(const SwigluBackward<T>& pass, std::int64_t count);

}  // namespace llama
