#include "examples/llama/swiglu.hpp"

#include "examples/llama/vector_math.hpp"

namespace llama {
namespace {

template <class T>
LLAMA_INLINE void forward(const T* __restrict gate,
                          const T* __restrict up,
                          std::int64_t count,
                          T* __restrict y) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = widen(gate[i]);
    y[i] = narrow<T>(rounded_to<T>(g * sigmoid(g)) * widen(up[i]));
  }
}

/// d silu / dg = s + g·s·(1 − s) with s = sigmoid(g).
template <class T>
LLAMA_INLINE void backward(const SwigluBackward<T>& pass, std::int64_t count) {
  const T* __restrict dy = pass.dy;
  T* __restrict gate = pass.gate;
  T* __restrict up = pass.up;
  T* __restrict y = pass.y;
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = widen(gate[i]);
    const float u = widen(up[i]);
    const float d = widen(dy[i]);
    const float s = sigmoid(g);
    const float silu = rounded_to<T>(g * s);
    y[i] = narrow<T>(silu * u);
    up[i] = narrow<T>(d * silu);
    gate[i] = narrow<T>(d * u * (s + g * s * (1.0F - s)));
  }
}

LLAMA_CLONES void forward_fp32(const float* gate, const float* up, std::int64_t count, float* y) {
  forward(gate, up, count, y);
}
LLAMA_CLONES void forward_bf16(const bfloat16* gate,
                               const bfloat16* up,
                               std::int64_t count,
                               bfloat16* y) {
  forward(gate, up, count, y);
}
LLAMA_CLONES void backward_fp32(const SwigluBackward<float>& pass, std::int64_t count) {
  backward(pass, count);
}
LLAMA_CLONES void backward_bf16(const SwigluBackward<bfloat16>& pass, std::int64_t count) {
  backward(pass, count);
}

}  // namespace

template <>
void swiglu(const float* gate, const float* up, std::int64_t count, float* y) {
  forward_fp32(gate, up, count, y);
}
template <>
void swiglu(const bfloat16* gate, const bfloat16* up, std::int64_t count, bfloat16* y) {
  forward_bf16(gate, up, count, y);
}

template <>
void swiglu_backward(const SwigluBackward<float>& pass, std::int64_t count) {
  backward_fp32(pass, count);
}
template <>
void swiglu_backward(const SwigluBackward<bfloat16>& pass, std::int64_t count) {
  backward_bf16(pass, count);
}

}  // namespace llama
