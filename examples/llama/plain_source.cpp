#include "examples/llama/plain_source.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>

namespace llama {
namespace {

constexpr std::size_t kAlignment = 512;

std::size_t count_of(const NamedParameter& parameter) {
  return static_cast<std::size_t>(std::accumulate(
      parameter.shape.begin(), parameter.shape.end(), std::int64_t{1}, std::multiplies<>()));
}

template <class T>
std::vector<T*> carve_all(Carver& carver, const std::vector<std::size_t>& counts) {
  std::vector<T*> arrays;
  arrays.reserve(counts.size());
  for (const std::size_t count : counts)
    arrays.push_back(carver.take<T>(static_cast<std::int64_t>(count)));
  return arrays;
}

}  // namespace

template <class T>
PlainModel<T>::PlainModel(const LlamaShape& shape)
    : shape_(shape), parameters_(parameters_of(shape)) {
  for (const NamedParameter& parameter : parameters_)
    counts_.push_back(count_of(parameter));
  Carver measure;
  carve_all<T>(measure, counts_);
  memory_.resize(2 * static_cast<std::size_t>(measure.bytes()) + kAlignment);
  void* start = memory_.data();
  std::size_t space = memory_.size();
  std::align(kAlignment, space - kAlignment, start, space);
  Carver carver(static_cast<std::byte*>(start));
  weights_ = carve_all<T>(carver, counts_);
  gradients_ = carve_all<T>(carver, counts_);
}

template <class T>
void PlainModel<T>::zero_gradients() {
  for (std::size_t i = 0; i < counts_.size(); ++i)
    std::fill_n(gradients_[i], counts_[i], T{});
}

template class PlainModel<float>;
template class PlainModel<sifr::bfloat16>;

}  // namespace llama
