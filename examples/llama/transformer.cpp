#include "examples/llama/transformer.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace llama {

template <class T>
std::int64_t Transformer<T>::memory_bytes(const LlamaShape& shape,
                                          const Extent& capacity,
                                          const TransformerOptions& options) {
  Carver measure;
  static_cast<void>(carve_activations<T>(measure, shape, capacity, options.recompute));
  return measure.bytes();
}

template <class T>
Transformer<T>::Transformer(const LlamaShape& shape,
                            const Extent& capacity,
                            const TransformerOptions& options,
                            std::byte* memory)
    : shape_(shape),
      capacity_(capacity),
      options_(options),
      products_(options.threads),
      rotary_(
          capacity.length, shape.head_size, shape.rope_theta, std::is_same_v<T, sifr::bfloat16>),
      embedding_backward_(capacity.tokens(), shape.hidden) {
  Carver carver(memory);
  activations_ = carve_activations<T>(carver, shape, capacity, options.recompute);
  inputs_.reserve(static_cast<std::size_t>(capacity.tokens()));
  targets_.reserve(static_cast<std::size_t>(capacity.tokens()));
}

template <class T>
void Transformer<T>::check(const Extent& extent, std::span<const std::int32_t> tokens) const {
  if (extent.rows < 1 || extent.length < 1 || !fits(extent)) {
    throw std::invalid_argument(
        "a batch of " + std::to_string(extent.rows) + " x " + std::to_string(extent.length) +
        " tokens; activations have room for " + std::to_string(capacity_.rows) + " x " +
        std::to_string(capacity_.length));
  }
  const auto wrong = std::find_if(tokens.begin(), tokens.end(), [this](std::int32_t token) {
    return token < 0 || token >= shape_.vocab;
  });
  if (wrong == tokens.end()) return;
  throw std::invalid_argument("token " + std::to_string(*wrong) + " at place " +
                              std::to_string(wrong - tokens.begin()) +
                              " of the batch: the vocabulary has " + std::to_string(shape_.vocab));
}

template <class T>
void Transformer<T>::take(const TokenBatch& batch) {
  const std::int64_t needed = batch.extent.rows * (batch.extent.length + 1);
  if (static_cast<std::int64_t>(batch.tokens.size()) != needed) {
    throw std::invalid_argument("a batch of " + std::to_string(batch.extent.rows) +
                                " sequences of " + std::to_string(batch.extent.length) +
                                " + 1 tokens needs " + std::to_string(needed) + " tokens, not " +
                                std::to_string(batch.tokens.size()));
  }
  check(batch.extent, batch.tokens);
  extent_ = batch.extent;
  inputs_.clear();
  targets_.clear();
  const auto length = static_cast<std::size_t>(extent_.length);
  for (std::size_t row = 0; row < static_cast<std::size_t>(extent_.rows); ++row) {
    const auto sequence = batch.tokens.subspan(row * (length + 1), length + 1);
    inputs_.insert(inputs_.end(), sequence.begin(), sequence.end() - 1);
    targets_.insert(targets_.end(), sequence.begin() + 1, sequence.end());
  }
}

template class Transformer<float>;
template class Transformer<sifr::bfloat16>;

}  // namespace llama
