#include "examples/llama/matrix_vector.hpp"

#include "examples/llama/vector_math.hpp"

namespace llama {
namespace {

constexpr std::int64_t kStretch = 256;  // columns summed at once

template <class T, class Out>
LLAMA_INLINE void by_rows(const T* matrix, const T* x, const MatrixExtent& extent, Out* y) {
  for (std::int64_t row = 0; row < extent.rows; ++row, matrix += extent.columns) {
    y[row] = narrow<Out>(sum_in_lanes(
        extent.columns, [=](std::int64_t i) { return widen(matrix[i]) * widen(x[i]); }));
  }
}

/// A stretch of columns, in fp32 on the stack.
template <class T>
LLAMA_INLINE void stretch_of_columns(
    const T* weights, const T* matrix, const MatrixExtent& extent, std::int64_t count, T* y) {
  float sums[kStretch] = {};
  for (std::int64_t row = 0; row < extent.rows; ++row, matrix += extent.columns) {
    const float weight = widen(weights[row]);
    for (std::int64_t i = 0; i < count; ++i)
      sums[i] += weight * widen(matrix[i]);
  }
  for (std::int64_t i = 0; i < count; ++i)
    y[i] = narrow<T>(sums[i]);
}

template <class T>
LLAMA_INLINE void by_columns(const T* weights, const T* matrix, const MatrixExtent& extent, T* y) {
  for (std::int64_t first = 0; first < extent.columns; first += kStretch) {
    const std::int64_t rest = extent.columns - first;
    stretch_of_columns(
        weights, matrix + first, extent, rest < kStretch ? rest : kStretch, y + first);
  }
}

LLAMA_CLONES void rows_fp32(const float* matrix,
                            const float* x,
                            const MatrixExtent& extent,
                            float* y) {
  by_rows(matrix, x, extent, y);
}
LLAMA_CLONES void rows_bf16(const bfloat16* matrix,
                            const bfloat16* x,
                            const MatrixExtent& extent,
                            bfloat16* y) {
  by_rows(matrix, x, extent, y);
}
LLAMA_CLONES void rows_bf16_to_fp32(const bfloat16* matrix,
                                    const bfloat16* x,
                                    const MatrixExtent& extent,
                                    float* y) {
  by_rows(matrix, x, extent, y);
}
LLAMA_CLONES void columns_fp32(const float* weights,
                               const float* matrix,
                               const MatrixExtent& extent,
                               float* y) {
  by_columns(weights, matrix, extent, y);
}
LLAMA_CLONES void columns_bf16(const bfloat16* weights,
                               const bfloat16* matrix,
                               const MatrixExtent& extent,
                               bfloat16* y) {
  by_columns(weights, matrix, extent, y);
}

}  // namespace

template <>
void matrix_vector(const float* matrix, const float* x, const MatrixExtent& extent, float* y) {
  rows_fp32(matrix, x, extent, y);
}
template <>
void matrix_vector(const bfloat16* matrix,
                   const bfloat16* x,
                   const MatrixExtent& extent,
                   bfloat16* y) {
  rows_bf16(matrix, x, extent, y);
}
template <>
void matrix_vector(const bfloat16* matrix,
                   const bfloat16* x,
                   const MatrixExtent& extent,
                   float* y) {
  rows_bf16_to_fp32(matrix, x, extent, y);
}

template <>
void vector_matrix(const float* weights,
                   const float* matrix,
                   const MatrixExtent& extent,
                   float* y) {
  columns_fp32(weights, matrix, extent, y);
}
template <>
void vector_matrix(const bfloat16* weights,
                   const bfloat16* matrix,
                   const MatrixExtent& extent,
                   bfloat16* y) {
  columns_bf16(weights, matrix, extent, y);
}

}  // namespace llama
