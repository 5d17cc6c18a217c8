#include "bench/plain_loop.hpp"

#include "device/kernels.hpp"
#include "device/philox.hpp"

#include <algorithm>
#include <cmath>

namespace bench {
namespace {

using sifr::bfloat16;
using sifr::ConstView;
using sifr::DType;
using sifr::View;

}  // namespace

std::vector<std::int32_t> random_tokens(const TrainingOptions& options, int rank) {
  const llama::Extent extent = options.extent();
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(extent.tokens() + extent.rows));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::int32_t>(
        255 * sifr::philox_uniform(3, static_cast<std::uint64_t>(rank), i));
  }
  return tokens;
}

PlainLoop::PlainLoop(const TrainingOptions& options)
    : shape_(llama::parse_shape(options.shape)),
      model_(shape_),
      device_(sifr::make_host_device({})),
      activations_(device_->allocate(
          llama::Transformer<bfloat16>::memory_bytes(shape_, options.extent(), {}),
          sifr::Purpose::kActivation)),
      transformer_(shape_, options.extent(), {}, activations_.data()),
      tokens_(random_tokens(options, 0)),
      extent_(options.extent()) {
  std::int64_t count = 0;
  for (std::size_t p = 0; p < model_.parameters().size(); ++p)
    count += static_cast<std::int64_t>(model_.weights(p).size());
  for (sifr::Buffer& buffer : state_)
    buffer = device_->allocate(count * 4, sifr::Purpose::kOptimizer);
  for (std::size_t p = 0; p < model_.parameters().size(); ++p) {
    const bool is_norm = model_.parameters()[p].is_norm;
    for (std::size_t i = 0; i < model_.weights(p).size(); ++i) {
      model_.weights(p)[i] =
          sifr::to_bfloat16(is_norm ? 1.0F : 0.02F * sifr::philox_normal(1, p, i));
    }
  }
}

double PlainLoop::step() {
  auto source = model_.source();
  model_.zero_gradients();
  const double loss = transformer_.forward(source, {tokens_, extent_});
  transformer_.backward(source, 1.0F);
  update();
  return loss;
}

template <class F>
void PlainLoop::for_each(const F& f) {
  std::int64_t first = 0;
  for (std::size_t p = 0; p < model_.parameters().size(); ++p) {
    const auto count = static_cast<std::int64_t>(model_.weights(p).size());
    f(p, first, count);
    first += count;
  }
}

void PlainLoop::update() {
  sifr::Stream& stream = device_->compute();
  sifr::kernels::SquareSum squares;
  for_each([&](std::size_t p, std::int64_t first, std::int64_t count) {
    const ConstView gradient{
        reinterpret_cast<const std::byte*>(model_.gradients(p).data()), count, DType::kBFloat16};
    sifr::kernels::sum_in_order(
        std::span(&gradient, 1), state(0, first, count), sifr::kernels::Into::kWrite, stream);
    sifr::kernels::square_sum(state(0, first, count), squares, stream);
  });
  const double norm = std::sqrt(squares.sum.value());
  sifr::kernels::AdamScalars scalars;
  scalars.factor = static_cast<float>(std::min(1.0, 1.0 / (norm + 1e-6)));
  scalars.one_minus_beta1 = 0.1F;
  scalars.one_minus_beta2 = 0.001F;
  scalars.step_size = 1e-4F;
  for_each([&](std::size_t p, std::int64_t first, std::int64_t count) {
    const View weights{
        reinterpret_cast<std::byte*>(model_.weights(p).data()), count, DType::kBFloat16};
    sifr::kernels::adam({state(0, first, count),
                         state(1, first, count),
                         state(2, first, count),
                         state(3, first, count),
                         weights},
                        scalars,
                        stream);
  });
}

View PlainLoop::state(std::size_t which, std::int64_t first, std::int64_t count) const {
  return {state_[which].data() + first * 4, count, DType::kFloat32};
}

}  // namespace bench
