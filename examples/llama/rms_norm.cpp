#include "examples/llama/rms_norm.hpp"

#include "examples/llama/vector_math.hpp"

#include <cmath>

namespace llama {
namespace {

template <class T>
LLAMA_INLINE void normalise(const T* __restrict x,
                            const T* __restrict weight,
                            float inverse,
                            std::int64_t width,
                            T* __restrict y) {
  for (std::int64_t i = 0; i < width; ++i) {
    y[i] = narrow<T>(rounded_to<T>(widen(x[i]) * inverse) * widen(weight[i]));
  }
}

template <class T>
LLAMA_INLINE void forward_rows(
    const T* x, const T* weight, float eps, RmsNormExtent extent, T* y, float* inverse_rms) {
  const std::int64_t width = extent.width;
  for (std::int64_t row = 0; row < extent.rows; ++row, x += width, y += width) {
    const float squares =
        sum_in_lanes(width, [x](std::int64_t i) { return widen(x[i]) * widen(x[i]); });
    inverse_rms[row] = 1.0F / std::sqrt(squares / static_cast<float>(width) + eps);
    normalise(x, weight, inverse_rms[row], width, y);
  }
}

template <class T>
LLAMA_INLINE void again_rows(
    const T* x, const T* weight, const float* inverse_rms, RmsNormExtent extent, T* y) {
  for (std::int64_t row = 0; row < extent.rows; ++row, x += extent.width, y += extent.width) {
    normalise(x, weight, inverse_rms[row], extent.width, y);
  }
}

/// With h = x·r and e = dy·w: dx = r·(e − h·mean(e·h)), dw = Σ dy·h.
template <class T>
LLAMA_INLINE void backward_row(const RmsNormBackward<T>& pass,
                               std::int64_t row,
                               std::int64_t width) {
  const T* __restrict x = pass.x + row * width;
  const T* __restrict weight = pass.weight;
  const float* __restrict dy = pass.dy + row * width;
  T* __restrict dx = pass.dx + row * width;
  double* __restrict sums = pass.column_sums;
  const float r = pass.inverse_rms[row];
  const float dot = sum_in_lanes(
      width, [=](std::int64_t i) { return dy[i] * widen(weight[i]) * (widen(x[i]) * r); });
  const float mean = dot / static_cast<float>(width);
  for (std::int64_t i = 0; i < width; ++i) {
    const float h = widen(x[i]) * r;
    sums[i] += static_cast<double>(dy[i] * h);
    dx[i] = narrow<T>(widen(dx[i]) + r * (dy[i] * widen(weight[i]) - h * mean));
  }
}

template <class T>
LLAMA_INLINE void backward_rows(const RmsNormBackward<T>& pass, RmsNormExtent extent) {
  for (std::int64_t i = 0; i < extent.width; ++i)
    pass.column_sums[i] = 0;
  for (std::int64_t row = 0; row < extent.rows; ++row)
    backward_row(pass, row, extent.width);
  for (std::int64_t i = 0; i < extent.width; ++i) {
    pass.d_weight[i] = narrow<T>(widen(pass.d_weight[i]) + static_cast<float>(pass.column_sums[i]));
  }
}

LLAMA_CLONES void forward_fp32(
    const float* x, const float* w, float eps, RmsNormExtent extent, float* y, float* r) {
  forward_rows(x, w, eps, extent, y, r);
}
LLAMA_CLONES void forward_bf16(
    const bfloat16* x, const bfloat16* w, float eps, RmsNormExtent extent, bfloat16* y, float* r) {
  forward_rows(x, w, eps, extent, y, r);
}
LLAMA_CLONES void again_fp32(
    const float* x, const float* w, const float* r, RmsNormExtent extent, float* y) {
  again_rows(x, w, r, extent, y);
}
LLAMA_CLONES void again_bf16(
    const bfloat16* x, const bfloat16* w, const float* r, RmsNormExtent extent, bfloat16* y) {
  again_rows(x, w, r, extent, y);
}
LLAMA_CLONES void backward_fp32(const RmsNormBackward<float>& pass, RmsNormExtent extent) {
  backward_rows(pass, extent);
}
LLAMA_CLONES void backward_bf16(const RmsNormBackward<bfloat16>& pass, RmsNormExtent extent) {
  backward_rows(pass, extent);
}

}  // namespace

template <>
void rms_norm(const float* x,
              const float* weight,
              double eps,
              RmsNormExtent extent,
              float* y,
              float* inverse_rms) {
  forward_fp32(x, weight, static_cast<float>(eps), extent, y, inverse_rms);
}
template <>
void rms_norm(const bfloat16* x,
              const bfloat16* weight,
              double eps,
              RmsNormExtent extent,
              bfloat16* y,
              float* inverse_rms) {
  forward_bf16(x, weight, static_cast<float>(eps), extent, y, inverse_rms);
}

template <>
void rms_norm_again(
    const float* x, const float* weight, const float* inverse_rms, RmsNormExtent extent, float* y) {
  again_fp32(x, weight, inverse_rms, extent, y);
}
template <>
void rms_norm_again(const bfloat16* x,
                    const bfloat16* weight,
                    const float* inverse_rms,
                    RmsNormExtent extent,
                    bfloat16* y) {
  again_bf16(x, weight, inverse_rms, extent, y);
}

template <>
void rms_norm_backward(const RmsNormBackward<float>& pass, RmsNormExtent extent) {
  backward_fp32(pass, extent);
}
template <>
void rms_norm_backward(const RmsNormBackward<bfloat16>& pass, RmsNormExtent extent) {
  backward_bf16(pass, extent);
}

}  // namespace llama
