#pragma once

#include <cstdint>

/// Products with a single row, for generation: they read the matrix once, where it lies.
namespace llama {

struct MatrixExtent {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

/// y[row] = Σ matrix[row][column] · x[column], in fp32, rounded once.
template <class T, class Out>
void matrix_vector(const T* matrix, const T* x, const MatrixExtent& extent, Out* y);

/// y[column] = Σ weights[row] · matrix[row][column], in fp32 in the order of rows, rounded once.
template <class T>
void vector_matrix(const T* weights, const T* matrix, const MatrixExtent& extent, T* y);

}  // namespace llama
