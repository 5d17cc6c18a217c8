#include "examples/llama/sampling.hpp"

#include "device/philox.hpp"
#include "examples/llama/element.hpp"

#include <algorithm>
#include <cmath>

namespace llama {
namespace {

template <class T>
std::int32_t draw_by(std::span<const T> logits,
                     double temperature,
                     double largest,
                     double uniform) {
  const auto likelihood = [=](T logit) {
    return std::exp((static_cast<double>(widen(logit)) - largest) / temperature);
  };
  double sum = 0;
  for (const T logit : logits)
    sum += likelihood(logit);
  double rest = uniform * sum;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    rest -= likelihood(logits[i]);
    if (rest < 0) return static_cast<std::int32_t>(i);
  }
  return static_cast<std::int32_t>(logits.size() - 1);
}

}  // namespace

template <class T>
std::int32_t pick(std::span<const T> logits, const Sampling& sampling, std::uint64_t draw) {
  const auto likeliest =
      std::max_element(logits.begin(), logits.end(), [](T a, T b) { return widen(a) < widen(b); });
  if (sampling.temperature <= 0) return static_cast<std::int32_t>(likeliest - logits.begin());
  const auto uniform = static_cast<double>(sifr::philox_uniform(sampling.seed, 0, draw));
  return draw_by(logits, sampling.temperature, static_cast<double>(widen(*likeliest)), uniform);
}

template std::int32_t pick(std::span<const float>, const Sampling&, std::uint64_t);
template std::int32_t pick(std::span<const sifr::bfloat16>, const Sampling&, std::uint64_t);

}  // namespace llama
