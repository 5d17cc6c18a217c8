#include "examples/llama/widened_product.hpp"

#include "examples/llama/element.hpp"

#include <algorithm>

namespace llama {
namespace {

constexpr std::int64_t kBlock = 768;  // edge of a block: three of them in fp32 are 7 MB

/// Rows [row, row + rows) and columns [column, column + columns) of a matrix whose rows are
/// `stride` apart.
struct Part {
  std::int64_t row;
  std::int64_t rows;
  std::int64_t column;
  std::int64_t columns;
  std::int64_t stride;
};

void widen_part(const bfloat16* from, const Part& part, float* to) {
  for (std::int64_t row = 0; row < part.rows; ++row) {
    const bfloat16* line = from + (part.row + row) * part.stride + part.column;
    for (std::int64_t i = 0; i < part.columns; ++i)
      *to++ = widen(line[i]);
  }
}

template <class T, class Store>
BlockSink sink_into(T* c, std::int64_t stride, const Store& store) {
  return [c, stride, store](const ResultBlock& block) {
    const float* value = block.values;
    for (std::int64_t row = 0; row < block.rows; ++row) {
      T* line = c + (block.row + row) * stride + block.column;
      for (std::int64_t i = 0; i < block.columns; ++i)
        store(line[i], *value++);
    }
  };
}

}  // namespace

BlockSink rounded_into(bfloat16* c, std::int64_t stride) {
  return sink_into(c, stride, [](bfloat16& to, float value) { to = narrow<bfloat16>(value); });
}

BlockSink written_into(float* c, std::int64_t stride) {
  return sink_into(c, stride, [](float& to, float value) { to = value; });
}

BlockSink added_into(float* c, std::int64_t stride) {
  return sink_into(c, stride, [](float& to, float value) { to += value; });
}

void WidenedProduct::run(const Product& product,
                         const bfloat16* a,
                         const bfloat16* b,
                         const Multiply& multiply,
                         const BlockSink& sink) {
  for (std::vector<float>* block : {&a_block_, &b_block_, &c_block_}) {
    block->resize(static_cast<std::size_t>(kBlock * kBlock));
  }
  a_ = a;
  b_ = b;
  for (std::int64_t row = 0; row < product.m; row += kBlock) {
    const Range rows = {row, std::min(kBlock, product.m - row)};
    for (std::int64_t column = 0; column < product.n; column += kBlock) {
      const Range columns = {column, std::min(kBlock, product.n - column)};
      for (std::int64_t depth = 0; depth < product.k; depth += kBlock) {
        add_block(product, rows, columns, {depth, std::min(kBlock, product.k - depth)}, multiply);
      }
      sink({rows.first, columns.first, rows.count, columns.count, c_block_.data()});
    }
  }
}

void WidenedProduct::add_block(
    const Product& product, Range rows, Range columns, Range depth, const Multiply& multiply) {
  const Part a_part = product.is_a_transposed
                          ? Part{depth.first, depth.count, rows.first, rows.count, product.m}
                          : Part{rows.first, rows.count, depth.first, depth.count, product.k};
  const Part b_part = product.is_b_transposed
                          ? Part{columns.first, columns.count, depth.first, depth.count, product.k}
                          : Part{depth.first, depth.count, columns.first, columns.count, product.n};
  widen_part(a_, a_part, a_block_.data());
  widen_part(b_, b_part, b_block_.data());
  Product block = product;
  block.m = rows.count;
  block.n = columns.count;
  block.k = depth.count;
  block.adds = depth.first > 0;
  multiply(block, a_block_.data(), b_block_.data(), c_block_.data());
}

}  // namespace llama
