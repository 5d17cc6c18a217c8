#pragma once

#include "examples/llama/block.hpp"
#include "examples/llama/embedding.hpp"
#include "examples/llama/head.hpp"
#include "examples/llama/rotary.hpp"
#include "examples/llama/shape.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace llama {

/// The model token by token, for generation: each block's keys and values of earlier positions are
/// kept, so that a token costs one reading of the weights. It asks the same sources as Transformer.
template <class T>
class Decoder {
 public:
  /// Bytes of memory for `positions` tokens.
  [[nodiscard]] static std::int64_t memory_bytes(const LlamaShape& shape, std::int64_t positions);
  /// `memory`: memory_bytes(…) bytes on 512, which outlive the object.
  Decoder(const LlamaShape& shape, std::int64_t positions, std::byte* memory);

  /// Takes the next token; the logits [vocab] of what follows it, valid until the next call. Throws
  /// std::invalid_argument for a token beyond the vocabulary or a position beyond the last.
  template <class Source>
  [[nodiscard]] std::span<const T> next(Source& source, std::int32_t token);

 private:
  /// One token's activations, and the cache.
  struct Arrays {
    T* stream;         // [hidden]
    T* normed;         // [hidden]
    T* branch;         // [hidden]
    T* queries;        // [query width]
    T* turned;         // [query width]
    T* keys;           // [kv width]
    T* values;         // [kv width]
    T* attention;      // [query width]
    T* gate;           // [intermediate]
    T* up;             // [intermediate]
    T* activated;      // [intermediate]
    T* logits;         // [vocab]
    float* scores;     // [positions]
    T* probabilities;  // [positions]
    T* key_cache;      // [layer][key head][position][head_size]
    T* value_cache;    // [layer][key head][position][head_size]
  };
  [[nodiscard]] static Arrays carve(Carver& carver,
                                    const LlamaShape& shape,
                                    std::int64_t positions);
  void check(std::int32_t token) const;
  void normalise(const T* weight);
  void run_block(const BlockWeights<T>& weights, std::int64_t layer);
  void remember(std::int64_t layer);
  void attend(std::int64_t layer, std::int64_t kv_head);
  void finish(const HeadWeights<T>& weights);

  LlamaShape shape_;
  std::int64_t positions_;
  RotaryTable rotary_;
  Arrays arrays_;
  std::int64_t position_ = 0;
};

template <class T>
template <class Source>
std::span<const T> Decoder<T>::next(Source& source, std::int32_t token) {
  check(token);
  embed(source.embedding().table,
        std::span<const std::int32_t>(&token, 1),
        shape_.hidden,
        arrays_.stream);
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
    const auto block = source.block(layer);
    run_block(block.weights, layer);
  }
  const auto head = source.head();
  finish(head.weights);
  ++position_;
  return {arrays_.logits, static_cast<std::size_t>(shape_.vocab)};
}

extern template class Decoder<float>;
extern template class Decoder<sifr::bfloat16>;

}  // namespace llama
