#include "examples/llama/decoder.hpp"

#include "examples/llama/matrix_vector.hpp"
#include "examples/llama/residual.hpp"
#include "examples/llama/rms_norm.hpp"
#include "examples/llama/swiglu.hpp"

#include <string>
#include <type_traits>

namespace llama {

template <class T>
typename Decoder<T>::Arrays Decoder<T>::carve(Carver& carver,
                                              const LlamaShape& shape,
                                              std::int64_t positions) {
  const std::int64_t cache = shape.layers * shape.kv_width() * positions;
  return {.stream = carver.take<T>(shape.hidden),
          .normed = carver.take<T>(shape.hidden),
          .branch = carver.take<T>(shape.hidden),
          .queries = carver.take<T>(shape.query_width()),
          .turned = carver.take<T>(shape.query_width()),
          .keys = carver.take<T>(shape.kv_width()),
          .values = carver.take<T>(shape.kv_width()),
          .attention = carver.take<T>(shape.query_width()),
          .gate = carver.take<T>(shape.intermediate),
          .up = carver.take<T>(shape.intermediate),
          .activated = carver.take<T>(shape.intermediate),
          .logits = carver.take<T>(shape.vocab),
          .scores = carver.take<float>(positions),
          .probabilities = carver.take<T>(positions),
          .key_cache = carver.take<T>(cache),
          .value_cache = carver.take<T>(cache)};
}

template <class T>
std::int64_t Decoder<T>::memory_bytes(const LlamaShape& shape, std::int64_t positions) {
  Carver measure;
  static_cast<void>(carve(measure, shape, positions));
  return measure.bytes();
}

template <class T>
Decoder<T>::Decoder(const LlamaShape& shape, std::int64_t positions, std::byte* memory)
    : shape_(shape),
      positions_(positions),
      rotary_(positions, shape.head_size, shape.rope_theta, std::is_same_v<T, sifr::bfloat16>) {
  Carver carver(memory);
  arrays_ = carve(carver, shape, positions);
}

template <class T>
void Decoder<T>::check(std::int32_t token) const {
  if (token < 0 || token >= shape_.vocab) {
    throw std::invalid_argument("token " + std::to_string(token) + ": the vocabulary has " +
                                std::to_string(shape_.vocab));
  }
  if (position_ >= positions_) {
    throw std::invalid_argument("the decoder has room for " + std::to_string(positions_) +
                                " tokens");
  }
}

template <class T>
void Decoder<T>::normalise(const T* weight) {
  float inverse_rms = 0;
  rms_norm(
      arrays_.stream, weight, shape_.rms_eps, {1, shape_.hidden}, arrays_.normed, &inverse_rms);
}

template <class T>
void Decoder<T>::run_block(const BlockWeights<T>& weights, std::int64_t layer) {
  const Arrays& a = arrays_;
  const auto apply = [](const T* matrix, const T* x, std::int64_t out, std::int64_t in, T* y) {
    matrix_vector(matrix, x, {out, in}, y);
  };
  normalise(weights[kInputNorm]);
  apply(weights[kQuery], a.normed, shape_.query_width(), shape_.hidden, a.queries);
  apply(weights[kKey], a.normed, shape_.kv_width(), shape_.hidden, a.keys);
  apply(weights[kValue], a.normed, shape_.kv_width(), shape_.hidden, a.values);
  remember(layer);
  for (std::int64_t head = 0; head < shape_.kv_heads; ++head)
    attend(layer, head);
  apply(weights[kOutput], a.attention, shape_.hidden, shape_.query_width(), a.branch);
  add_residual(a.stream, a.branch, shape_.hidden, a.stream);
  normalise(weights[kPostNorm]);
  apply(weights[kGate], a.normed, shape_.intermediate, shape_.hidden, a.gate);
  apply(weights[kUp], a.normed, shape_.intermediate, shape_.hidden, a.up);
  swiglu(a.gate, a.up, shape_.intermediate, a.activated);
  apply(weights[kDown], a.activated, shape_.hidden, shape_.intermediate, a.branch);
  add_residual(a.stream, a.branch, shape_.hidden, a.stream);
}

/// Turns the queries, puts the turned keys and the values into the cache.
template <class T>
void Decoder<T>::remember(std::int64_t layer) {
  const std::int64_t size = shape_.head_size;
  const HeadGroup all = {1, shape_.heads, size, shape_.query_width()};
  split_and_turn(arrays_.queries, all, rotary_, position_, arrays_.turned);
  const HeadGroup one = {1, 1, size, shape_.kv_width()};
  for (std::int64_t head = 0; head < shape_.kv_heads; ++head) {
    const std::int64_t place = ((layer * shape_.kv_heads + head) * positions_ + position_) * size;
    split_and_turn(arrays_.keys + head * size, one, rotary_, position_, arrays_.key_cache + place);
    split_heads(arrays_.values + head * size, one, arrays_.value_cache + place);
  }
}

template <class T>
void Decoder<T>::attend(std::int64_t layer, std::int64_t kv_head) {
  const std::int64_t size = shape_.head_size;
  const std::int64_t group = shape_.heads / shape_.kv_heads;
  const std::int64_t first = (layer * shape_.kv_heads + kv_head) * positions_ * size;
  const MatrixExtent past = {position_ + 1, size};
  const AttentionBlock row = {.first_position = position_,
                              .rows = 1,
                              .keys = past.rows,
                              .group = 1,
                              .scale = attention_scale(size)};
  for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    matrix_vector(arrays_.key_cache + first, arrays_.turned + head * size, past, arrays_.scores);
    SoftmaxRow stats;
    attention_softmax(arrays_.scores, row, arrays_.probabilities, &stats);
    vector_matrix(
        arrays_.probabilities, arrays_.value_cache + first, past, arrays_.attention + head * size);
  }
}

template <class T>
void Decoder<T>::finish(const HeadWeights<T>& weights) {
  normalise(weights.norm);
  matrix_vector(weights.matrix, arrays_.normed, {shape_.vocab, shape_.hidden}, arrays_.logits);
}

template class Decoder<float>;
template class Decoder<sifr::bfloat16>;

}  // namespace llama
