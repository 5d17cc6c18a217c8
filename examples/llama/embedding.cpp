#include "examples/llama/embedding.hpp"

#include "examples/llama/element.hpp"

#include <algorithm>
#include <numeric>

namespace llama {
namespace {

template <class T>
void add_row(const T* row, std::vector<float>& sum) {
  for (std::size_t i = 0; i < sum.size(); ++i)
    sum[i] += widen(row[i]);
}

template <class T>
void add_sum(const std::vector<float>& sum, T* row) {
  for (std::size_t i = 0; i < sum.size(); ++i)
    row[i] = narrow<T>(widen(row[i]) + sum[i]);
}

}  // namespace

template <class T>
void embed(const T* table, std::span<const std::int32_t> tokens, std::int64_t width, T* x) {
  for (const std::int32_t token : tokens)
    x = std::copy_n(table + token * width, width, x);
}

template <class T>
EmbeddingBackward<T>::EmbeddingBackward(std::int64_t places, std::int64_t width)
    : sum_(static_cast<std::size_t>(width)) {
  order_.reserve(static_cast<std::size_t>(places));
}

template <class T>
void EmbeddingBackward<T>::run(std::span<const std::int32_t> tokens, const T* dx, T* d_table) {
  const auto token_at = [tokens](std::int32_t place) {
    return tokens[static_cast<std::size_t>(place)];
  };
  order_.resize(tokens.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::sort(order_.begin(), order_.end(), [&token_at](std::int32_t a, std::int32_t b) {
    return token_at(a) != token_at(b) ? token_at(a) < token_at(b) : a < b;
  });
  const auto width = static_cast<std::int64_t>(sum_.size());
  for (std::size_t first = 0; first < order_.size();) {
    const std::int32_t token = token_at(order_[first]);
    std::fill(sum_.begin(), sum_.end(), 0.0F);
    for (; first < order_.size() && token_at(order_[first]) == token; ++first)
      add_row(dx + order_[first] * width, sum_);
    add_sum(sum_, d_table + token * width);
  }
}

template void embed(const float*, std::span<const std::int32_t>, std::int64_t, float*);
template void embed(const sifr::bfloat16*,
                    std::span<const std::int32_t>,
                    std::int64_t,
                    sifr::bfloat16*);
template class EmbeddingBackward<float>;
template class EmbeddingBackward<sifr::bfloat16>;

}  // namespace llama
