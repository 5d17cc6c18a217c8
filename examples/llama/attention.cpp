#include "examples/llama/attention.hpp"

#include <algorithm>

namespace llama {
namespace {

/// Positions of a block of queries: at least 64, and at most 32 blocks, so that few different
/// products are compiled. It follows from the length alone, and so do the bits.
std::int64_t block_positions(std::int64_t length) {
  return std::max<std::int64_t>(64, (length + 2047) / 2048 * 64);
}

/// One row's one key head: its matrices and the sizes of its products.
template <class T>
class HeadPass {
 public:
  HeadPass(const AttentionContext<T>& context,
           const AttentionKept<T>& kept,
           std::int64_t row,
           std::int64_t kv_head)
      : context_(context),
        group_(context.shape.heads / context.shape.kv_heads),
        size_(context.shape.head_size),
        length_(context.extent.length) {
    const std::int64_t index = row * context.shape.kv_heads + kv_head;
    queries_ = kept.queries + index * length_ * group_ * size_;
    keys_ = kept.keys + index * length_ * size_;
    values_ = kept.values + index * length_ * size_;
    stats_ = kept.stats + index * length_ * group_;
    query_place_ = (row * length_ * context.shape.heads + kv_head * group_) * size_;
    kv_place_ = (row * length_ * context.shape.kv_heads + kv_head) * size_;
    output_ = kept.output + query_place_;
  }

  void forward(const Projections<T>& projections) const {
    split_and_turn(projections.queries + query_place_, query_heads(), context_.rotary, 0, queries_);
    split_and_turn(projections.keys + kv_place_, kv_heads(), context_.rotary, 0, keys_);
    split_heads(projections.values + kv_place_, kv_heads(), values_);
    float* output = context_.scratch.d_queries;
    const std::int64_t step = block_positions(length_);
    for (std::int64_t first = 0; first < length_; first += step)
      forward_block(block(first, step), output);
    merge_heads(output, query_heads(), output_);
  }

  void backward(const T* d_output, const Projections<T>& gradients) const {
    const AttentionScratch<T>& scratch = context_.scratch;
    head_dots(output_, d_output + query_place_, query_heads(), scratch.dots);
    split_heads(d_output + query_place_, query_heads(), scratch.d_output);
    const std::int64_t step = block_positions(length_);
    // From the last block on: it sees every key, so its product writes what the others add to.
    for (std::int64_t first = (length_ - 1) / step * step; first >= 0; first -= step)
      backward_block(block(first, step));
    merge_and_turn_back(
        scratch.d_queries, query_heads(), context_.rotary, gradients.queries + query_place_);
    merge_and_turn_back(scratch.d_keys, kv_heads(), context_.rotary, gradients.keys + kv_place_);
    merge_heads(scratch.d_values, kv_heads(), gradients.values + kv_place_);
  }

 private:
  [[nodiscard]] HeadGroup query_heads() const {
    return {length_, group_, size_, context_.shape.query_width()};
  }
  [[nodiscard]] HeadGroup kv_heads() const {
    return {length_, 1, size_, context_.shape.kv_width()};
  }

  [[nodiscard]] AttentionBlock block(std::int64_t first, std::int64_t step) const {
    const std::int64_t end = std::min(first + step, length_);
    return {.first_position = first,
            .rows = (end - first) * group_,
            .keys = end,
            .group = group_,
            .scale = attention_scale(size_)};
  }

  /// [rows][head_size] · [keys][head_size]ᵀ
  [[nodiscard]] Product by_keys(const AttentionBlock& block) const {
    return {.m = block.rows, .n = block.keys, .k = size_, .is_b_transposed = true};
  }
  /// [rows][keys] · [keys][head_size]
  [[nodiscard]] Product over_keys(const AttentionBlock& block) const {
    return {.m = block.rows, .n = size_, .k = block.keys};
  }
  /// [rows][keys]ᵀ · [rows][head_size]
  [[nodiscard]] Product over_rows(const AttentionBlock& block) const {
    const bool is_last = block.keys == length_;
    return {
        .m = block.keys, .n = size_, .k = block.rows, .is_a_transposed = true, .adds = !is_last};
  }

  void forward_block(const AttentionBlock& block, float* output) const {
    const AttentionScratch<T>& scratch = context_.scratch;
    const std::int64_t first_row = block.first_position * group_;
    context_.products.multiply(by_keys(block), queries_ + first_row * size_, keys_, scratch.scores);
    attention_softmax(scratch.scores, block, scratch.probabilities, stats_ + first_row);
    context_.products.multiply(
        over_keys(block), scratch.probabilities, values_, output + first_row * size_);
  }

  void backward_block(const AttentionBlock& block) const {
    const AttentionScratch<T>& scratch = context_.scratch;
    MatrixProducts& products = context_.products;
    const std::int64_t first_row = block.first_position * group_;
    const T* queries = queries_ + first_row * size_;
    const T* d_output = scratch.d_output + first_row * size_;
    products.multiply(by_keys(block), queries, keys_, scratch.scores);
    products.multiply(by_keys(block), d_output, values_, scratch.d_probabilities);
    const AttentionSoftmaxBackward<T> pass = {.scores = scratch.scores,
                                              .d_probabilities = scratch.d_probabilities,
                                              .stats = stats_ + first_row,
                                              .dots = scratch.dots + first_row,
                                              .probabilities = scratch.probabilities,
                                              .d_scores = scratch.d_scores};
    attention_softmax_backward(pass, block);
    products.multiply(over_rows(block), scratch.probabilities, d_output, scratch.d_values);
    products.multiply(over_rows(block), scratch.d_scores, queries, scratch.d_keys);
    products.multiply(
        over_keys(block), scratch.d_scores, keys_, scratch.d_queries + first_row * size_);
  }

  const AttentionContext<T>& context_;
  std::int64_t group_;
  std::int64_t size_;
  std::int64_t length_;
  std::int64_t query_place_;  // of this row and head in [row][position][head][element]
  std::int64_t kv_place_;
  T* queries_;
  T* keys_;
  T* values_;
  SoftmaxRow* stats_;
  T* output_;
};

/// f(row, key head) for each.
template <class F>
void for_each_head(const LlamaShape& shape, const Extent& extent, const F& f) {
  for (std::int64_t row = 0; row < extent.rows; ++row) {
    for (std::int64_t head = 0; head < shape.kv_heads; ++head)
      f(row, head);
  }
}

}  // namespace

template <class T>
AttentionKept<T> carve_attention_kept(Carver& carver,
                                      const LlamaShape& shape,
                                      const Extent& extent) {
  AttentionKept<T> kept;
  kept.queries = carver.take<T>(extent.tokens() * shape.query_width());
  kept.keys = carver.take<T>(extent.tokens() * shape.kv_width());
  kept.values = carver.take<T>(extent.tokens() * shape.kv_width());
  kept.stats = carver.take<SoftmaxRow>(extent.tokens() * shape.heads);
  kept.output = carver.take<T>(extent.tokens() * shape.query_width());
  return kept;
}

template <class T>
AttentionScratch<T> carve_attention_scratch(Carver& carver,
                                            const LlamaShape& shape,
                                            std::int64_t length) {
  const std::int64_t group = shape.heads / shape.kv_heads;
  const std::int64_t square = std::min(block_positions(length), length) * group * length;
  AttentionScratch<T> scratch;
  scratch.scores = carver.take<float>(square);
  scratch.d_probabilities = carver.take<float>(square);
  scratch.probabilities = carver.take<T>(square);
  scratch.d_scores = carver.take<T>(square);
  scratch.d_output = carver.take<T>(length * group * shape.head_size);
  scratch.d_queries = carver.take<float>(length * group * shape.head_size);
  scratch.d_keys = carver.take<float>(length * shape.head_size);
  scratch.d_values = carver.take<float>(length * shape.head_size);
  scratch.dots = carver.take<float>(length * group);
  return scratch;
}

template <class T>
void attention(const AttentionContext<T>& context,
               const Projections<T>& projections,
               const AttentionKept<T>& kept) {
  for_each_head(context.shape, context.extent, [&](std::int64_t row, std::int64_t head) {
    HeadPass<T>(context, kept, row, head).forward(projections);
  });
}

template <class T>
void attention_backward(const AttentionContext<T>& context,
                        const AttentionKept<T>& kept,
                        const T* d_output,
                        const Projections<T>& gradients) {
  for_each_head(context.shape, context.extent, [&](std::int64_t row, std::int64_t head) {
    HeadPass<T>(context, kept, row, head).backward(d_output, gradients);
  });
}

template AttentionKept<float> carve_attention_kept(Carver&, const LlamaShape&, const Extent&);
template AttentionScratch<float> carve_attention_scratch(Carver&, const LlamaShape&, std::int64_t);
template void attention(const AttentionContext<float>&,
                        const Projections<float>&,
                        const AttentionKept<float>&);
template void attention_backward(const AttentionContext<float>&,
                                 const AttentionKept<float>&,
                                 const float*,
                                 const Projections<float>&);
template AttentionKept<sifr::bfloat16> carve_attention_kept(Carver&,
                                                            const LlamaShape&,
                                                            const Extent&);
template AttentionScratch<sifr::bfloat16> carve_attention_scratch(Carver&,
                                                                  const LlamaShape&,
                                                                  std::int64_t);
template void attention(const AttentionContext<sifr::bfloat16>&,
                        const Projections<sifr::bfloat16>&,
                        const AttentionKept<sifr::bfloat16>&);
template void attention_backward(const AttentionContext<sifr::bfloat16>&,
                                 const AttentionKept<sifr::bfloat16>&,
                                 const sifr::bfloat16*,
                                 const Projections<sifr::bfloat16>&);

}  // namespace llama
