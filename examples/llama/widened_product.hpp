#pragma once

#include "examples/llama/matmul.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace llama {

/// The block of c that starts at (row, column): rows × columns fp32 values, end to end.
struct ResultBlock {
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  const float* values = nullptr;
};
using BlockSink = std::function<void(const ResultBlock&)>;

/// Sinks that store blocks into c, whose rows are `stride` elements apart.
[[nodiscard]] BlockSink rounded_into(sifr::bfloat16* c, std::int64_t stride);
[[nodiscard]] BlockSink written_into(float* c, std::int64_t stride);
[[nodiscard]] BlockSink added_into(float* c, std::int64_t stride);

/// A bf16 product by fp32 ones: blocks of both operands are widened (exactly) into scratch of fixed
/// size, their products are added up over k in fp32.
class WidenedProduct {
 public:
  using Multiply = std::function<void(const Product&, const float* a, const float* b, float* c)>;
  void run(const Product& product,
           const sifr::bfloat16* a,
           const sifr::bfloat16* b,
           const Multiply& multiply,
           const BlockSink& sink);

 private:
  struct Range {
    std::int64_t first;
    std::int64_t count;
  };
  void add_block(
      const Product& product, Range rows, Range columns, Range depth, const Multiply& multiply);

  const sifr::bfloat16* a_ = nullptr;
  const sifr::bfloat16* b_ = nullptr;
  std::vector<float> a_block_;
  std::vector<float> b_block_;
  std::vector<float> c_block_;
};

}  // namespace llama
