#pragma once

#include "device/dtype.hpp"

#include <compare>
#include <cstdint>
#include <memory>
#include <vector>

namespace llama {

/// c[m][n] = a[m][k] · b[k][n]; all rows lie end to end. A product accumulates in fp32 and rounds
/// to c's type once.
struct Product {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool is_a_transposed = false;  // a lies as [k][m]
  bool is_b_transposed = false;  // b lies as [n][k]
  bool adds = false;             // c += instead of c =; only into fp32
  friend auto operator<=>(const Product&, const Product&) = default;
};

/// Matrix products by oneDNN on a fixed number of threads. One object per rank and thread of use:
/// it keeps the compiled products and their scratch memory, so that a shape seen before allocates
/// next to nothing. The same product gives the same bits in every run with the same number of
/// threads.
///
/// Where the processor has no bf16 products they are widened block by block to fp32 ones.
class MatrixProducts {
 public:
  explicit MatrixProducts(int threads);
  ~MatrixProducts();
  MatrixProducts(const MatrixProducts&) = delete;
  MatrixProducts& operator=(const MatrixProducts&) = delete;

  void multiply(const Product& product, const float* a, const float* b, float* c);
  void multiply(const Product& product,
                const sifr::bfloat16* a,
                const sifr::bfloat16* b,
                sifr::bfloat16* c);
  void multiply(const Product& product, const sifr::bfloat16* a, const sifr::bfloat16* b, float* c);

  /// Whether bf16 products are oneDNN's own.
  [[nodiscard]] bool has_bf16() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A linear layer's weight lies [out][in], as Hugging Face stores it.
struct Linear {
  std::int64_t rows = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
};
/// y[rows][out] = x[rows][in] · wᵀ
[[nodiscard]] constexpr Product forward_of(const Linear& layer) noexcept {
  return {.m = layer.rows, .n = layer.out, .k = layer.in, .is_b_transposed = true};
}
/// dx[rows][in] = dy[rows][out] · w
[[nodiscard]] constexpr Product input_gradient_of(const Linear& layer, bool adds = false) noexcept {
  return {.m = layer.rows, .n = layer.in, .k = layer.out, .adds = adds};
}
/// dw[out][in] = dyᵀ · x
[[nodiscard]] constexpr Product weight_gradient_of(const Linear& layer) noexcept {
  return {.m = layer.out, .n = layer.in, .k = layer.rows, .is_a_transposed = true};
}

}  // namespace llama
