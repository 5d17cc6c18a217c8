#pragma once

#include <cstdint>

/// RMSNorm (Zhang and Sennrich, 2019): y = w · x / √(mean(x²) + eps) for every row of
/// x[rows][width]. The quotient is rounded to T before it meets the weight, as in Hugging Face's
/// model.
namespace llama {

struct RmsNormExtent {
  std::int64_t rows = 0;
  std::int64_t width = 0;
};

/// Writes y and, for the way back, each row's 1 / √(mean(x²) + eps).
template <class T>
void rms_norm(
    const T* x, const T* weight, double eps, RmsNormExtent extent, T* y, float* inverse_rms);

/// y once more, from the kept inverse_rms: the same bits.
template <class T>
void rms_norm_again(
    const T* x, const T* weight, const float* inverse_rms, RmsNormExtent extent, T* y);

template <class T>
struct RmsNormBackward {
  const T* x = nullptr;
  const T* weight = nullptr;
  const float* inverse_rms = nullptr;
  const float* dy = nullptr;      // [rows][width]
  T* dx = nullptr;                // added to: the gradient that went past the norm
  T* d_weight = nullptr;          // [width], added to
  double* column_sums = nullptr;  // [width] of scratch
};

/// dx += (dL/dy)·(dy/dx), one rounding; d_weight += Σ over rows, in fp64, one rounding.
template <class T>
void rms_norm_backward(const RmsNormBackward<T>& pass, RmsNormExtent extent);

}  // namespace llama
