#include "tests/llama/plain_training.hpp"

#include <algorithm>

namespace llama::test {
namespace {

std::byte* aligned(std::vector<std::byte>& memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  return memory.data() + (512 - address % 512) % 512;
}

template <class T>
std::vector<std::byte> memory_for(const LlamaShape& shape,
                                  const Extent& extent,
                                  const TransformerOptions& options) {
  return std::vector<std::byte>(
      static_cast<std::size_t>(Transformer<T>::memory_bytes(shape, extent, options)) + 512);
}

}  // namespace

template <class T>
PlainTraining<T>::PlainTraining(const LlamaShape& shape,
                                const Extent& extent,
                                const TransformerOptions& options)
    : model_(shape),
      memory_(memory_for<T>(shape, extent, options)),
      transformer_(shape, extent, options, aligned(memory_)) {
  for (std::size_t i = 0; i < model_.parameters().size(); ++i)
    masters_.emplace_back(model_.weights(i).size());
  sums_ = m_ = v_ = masters_;
}

template <class T>
void PlainTraining<T>::set(std::size_t parameter, std::span<const float> values) {
  masters_[parameter].assign(values.begin(), values.end());
  std::transform(values.begin(), values.end(), model_.weights(parameter).begin(), [](float value) {
    return narrow<T>(value);
  });
}

template <class T>
double PlainTraining<T>::run(const TokenBatch& batch) {
  model_.zero_gradients();
  auto source = model_.source();
  const double loss = transformer_.forward(source, batch);
  transformer_.backward(source, 1);
  return loss;
}

template <class T>
void PlainTraining<T>::add_gradients() {
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const std::span<T> gradients = model_.gradients(i);
    for (std::size_t k = 0; k < gradients.size(); ++k)
      sums_[i][k] += widen(gradients[k]);
  }
}

template <class T>
double PlainTraining<T>::mean_norm(double micro_batches) const {
  double squares = 0;
  for (const std::vector<float>& sum : sums_) {
    for (const float value : sum)
      squares += static_cast<double>(value) * static_cast<double>(value);
  }
  return std::sqrt(squares) / micro_batches;
}

template <class T>
void PlainTraining<T>::update(std::size_t parameter, double factor, const AdamW& adam) {
  const double correction1 = 1 - std::pow(adam.beta1, updates_);
  const double correction2 = 1 - std::pow(adam.beta2, updates_);
  for (std::size_t k = 0; k < masters_[parameter].size(); ++k) {
    const double g = static_cast<double>(sums_[parameter][k]) * factor;
    const double m = adam.beta1 * static_cast<double>(m_[parameter][k]) + (1 - adam.beta1) * g;
    const double v = adam.beta2 * static_cast<double>(v_[parameter][k]) + (1 - adam.beta2) * g * g;
    const double w =
        static_cast<double>(masters_[parameter][k]) * (1 - adam.lr * adam.weight_decay);
    m_[parameter][k] = static_cast<float>(m);
    v_[parameter][k] = static_cast<float>(v);
    const double change = adam.lr * (m / correction1) / (std::sqrt(v / correction2) + adam.eps);
    masters_[parameter][k] = static_cast<float>(w - change);
    model_.weights(parameter)[k] = narrow<T>(masters_[parameter][k]);
  }
}

template <class T>
StepFacts PlainTraining<T>::step(std::span<const TokenBatch> micro_batches, const AdamW& adam) {
  for (std::vector<float>& sum : sums_)
    std::fill(sum.begin(), sum.end(), 0.0F);
  const auto count = static_cast<double>(micro_batches.size());
  double loss = 0;
  for (const TokenBatch& batch : micro_batches) {
    loss += run(batch) / count;
    add_gradients();
  }
  const double norm = mean_norm(count);
  const double clip = std::min(1.0, adam.clipping / (norm + 1e-6));
  ++updates_;
  for (std::size_t i = 0; i < masters_.size(); ++i)
    update(i, clip / count, adam);
  return {loss, norm};
}

template class PlainTraining<float>;
template class PlainTraining<sifr::bfloat16>;

}  // namespace llama::test
