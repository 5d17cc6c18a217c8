#include "tests/support/reference_zero.hpp"

#include "tests/support/reference_adam.hpp"
#include "tests/support/reference_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sifr::test {
namespace {

void add(std::vector<float>& sum, const std::vector<float>& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    sum[i] = sum[i] + values[i];
}

/// The sum of squares of each 256 elements: 32 lanes of fp64, then halves added.
std::vector<double> sums_of_quanta(const std::vector<float>& values) {
  std::vector<double> sums;
  for (std::size_t first = 0; first < values.size(); first += 256) {
    std::vector<double> lanes(32);
    for (std::size_t i = first; i < std::min(first + 256, values.size()); ++i) {
      const double value = values[i];
      lanes[(i - first) % 32] += value * value;
    }
    for (std::size_t half = 16; half > 0; half /= 2) {
      for (std::size_t lane = 0; lane < half; ++lane)
        lanes[lane] += lanes[lane + half];
    }
    sums.push_back(lanes[0]);
  }
  return sums;
}

}  // namespace

ReferenceZero::ReferenceZero(std::vector<ReferenceParameter> parameters,
                             const ReferenceOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  for (const ReferenceParameter& parameter : parameters_) {
    m_.emplace_back(parameter.master.size());
    v_.emplace_back(parameter.master.size());
  }
}

ReferenceReport ReferenceZero::step(const ReferenceGradients& gradients,
                                    double lr,
                                    double total_weight) {
  const auto ranks_and_micro_batches = static_cast<double>(gradients.size() * gradients[0].size());
  if (total_weight == 0) total_weight = ranks_and_micro_batches;
  std::vector<std::vector<float>> sums;
  ReferenceSum squares;
  bool is_finite = true;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    sums.push_back(options_.reduces_at_boundary ? sum_at_boundary(gradients, p)
                                                : sum_each_micro_batch(gradients, p));
    for (const double sum : sums_of_quanta(sums.back())) {
      is_finite = is_finite && std::isfinite(sum);
      if (is_finite) squares.add(sum);
    }
  }
  if (!is_finite) return {.gradient_norm = NAN, .lr = lr, .is_updated = false};

  const double norm = std::sqrt(squares.value()) / total_weight;
  const double clipping = options_.clip > 0 ? std::min(1.0, options_.clip / (norm + 1e-6)) : 1;
  const auto factor = static_cast<float>(clipping / total_weight);
  ++updates_;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (parameters_[p].trainable) update(p, sums[p], factor, lr);
  }
  return {.gradient_norm = norm, .lr = lr, .is_updated = true};
}

std::vector<float> ReferenceZero::weight(std::size_t parameter) const {
  std::vector<float> values = parameters_[parameter].master;
  if (parameters_[parameter].is_bf16)
    std::transform(values.begin(), values.end(), values.begin(), round_to_bf16);
  return values;
}

/// What a rank adds in one micro-batch, as it travels.
std::vector<float> ReferenceZero::sent(const std::vector<float>& own, std::size_t p) const {
  const ReferenceParameter& parameter = parameters_[p];
  if (!parameter.trainable) return {};
  if (own.empty()) return std::vector<float>(parameter.master.size());
  std::vector<float> values = own;
  const bool is_wire_bf16 = options_.is_wire_bf16 && !options_.reduces_at_boundary;
  if (parameter.is_gradient_bf16 || is_wire_bf16)
    std::transform(values.begin(), values.end(), values.begin(), round_to_bf16);
  return values;
}

/// Each micro-batch: ranks in order, in fp32; then that sum is added to the accumulator. The first
/// one is written, not added to 0.
std::vector<float> ReferenceZero::sum_each_micro_batch(const ReferenceGradients& gradients,
                                                       std::size_t p) const {
  std::vector<float> accumulator;
  for (const auto& micro_batch : gradients) {
    std::vector<float> sum = sent(micro_batch[0][p], p);
    for (std::size_t rank = 1; rank < micro_batch.size(); ++rank)
      add(sum, sent(micro_batch[rank][p], p));
    accumulator.empty() ? accumulator.swap(sum) : add(accumulator, sum);
  }
  return accumulator;
}

/// Each rank accumulates its own in fp32; then ranks in order.
std::vector<float> ReferenceZero::sum_at_boundary(const ReferenceGradients& gradients,
                                                  std::size_t p) const {
  std::vector<float> sum;
  for (std::size_t rank = 0; rank < gradients[0].size(); ++rank) {
    std::vector<float> own = sent(gradients[0][rank][p], p);
    for (std::size_t m = 1; m < gradients.size(); ++m)
      add(own, sent(gradients[m][rank][p], p));
    sum.empty() ? sum.swap(own) : add(sum, own);
  }
  return sum;
}

/// Adam in the written order: scalars in fp64, each rounded once; elements by ReferenceAdam.
void ReferenceZero::update(std::size_t p,
                           const std::vector<float>& sum,
                           float factor,
                           double group_lr) {
  ReferenceParameter& parameter = parameters_[p];
  const double lr = group_lr * static_cast<double>(parameter.lr_scale);
  const double decay = parameter.decay ? options_.weight_decay : 0;
  const double k = options_.has_bias_correction ? static_cast<double>(updates_) : INFINITY;
  const auto beta1 = static_cast<float>(options_.beta1);
  const auto beta2 = static_cast<float>(options_.beta2);
  const auto rest1 = static_cast<float>(1 - options_.beta1);
  const auto rest2 = static_cast<float>(1 - options_.beta2);
  const auto a = static_cast<float>(lr / (1 - std::pow(options_.beta1, k)));
  const auto q = static_cast<float>(std::sqrt(1 - std::pow(options_.beta2, k)));
  const auto d = static_cast<float>(options_.is_decoupled ? 1 - lr * decay : 1);
  const auto l2 = static_cast<float>(options_.is_decoupled ? 0 : decay);
  const auto eps = static_cast<float>(options_.eps);
  const ReferenceAdam adam{factor, beta1, rest1, beta2, rest2, a, q, eps, d, l2};
  for (std::size_t i = 0; i < sum.size(); ++i)
    adam.update(sum[i], parameter.master[i], m_[p][i], v_[p][i]);
}

}  // namespace sifr::test
