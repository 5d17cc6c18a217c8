#include "examples/llama/head.hpp"

#include "examples/llama/rms_norm.hpp"

#include <algorithm>

namespace llama {
namespace {

template <class T>
Linear projection(const BlockContext<T>& context) {
  return {context.extent.tokens(), context.shape.hidden, context.shape.vocab};
}

template <class T>
RmsNormExtent norm_extent(const BlockContext<T>& context) {
  return {context.extent.tokens(), context.shape.hidden};
}

}  // namespace

template <class T>
HeadKept<T> carve_head_kept(Carver& carver, const LlamaShape& shape, const Extent& extent) {
  const std::int64_t tokens = extent.tokens();
  HeadKept<T> kept;
  kept.input = carver.take<T>(tokens * shape.hidden);
  kept.inverse_rms = carver.take<float>(tokens);
  kept.normed = carver.take<T>(tokens * shape.hidden);
  kept.logits = carver.take<T>(tokens * shape.vocab);
  kept.rows = carver.take<SoftmaxRow>(tokens);
  return kept;
}

template <class T>
void head_logits(const BlockContext<T>& context,
                 const HeadWeights<T>& weights,
                 const HeadKept<T>& kept) {
  rms_norm(kept.input,
           weights.norm,
           context.shape.rms_eps,
           norm_extent(context),
           kept.normed,
           kept.inverse_rms);
  context.products.multiply(
      forward_of(projection(context)), kept.normed, weights.matrix, kept.logits);
}

template <class T>
double head_loss(const BlockContext<T>& context,
                 const HeadKept<T>& kept,
                 std::span<const std::int32_t> targets) {
  return cross_entropy(kept.logits, targets, context.shape.vocab, kept.rows);
}

template <class T>
void head_backward(const BlockContext<T>& context,
                   const HeadWeights<T>& weights,
                   const HeadKept<T>& kept,
                   const HeadGradients<T>& gradients,
                   const HeadBackward<T>& pass) {
  const Linear layer = projection(context);
  const BlockScratch<T>& scratch = context.scratch;
  cross_entropy_backward(kept.logits, pass.targets, context.shape.vocab, kept.rows, pass.scale);
  context.products.multiply(weight_gradient_of(layer), kept.logits, kept.normed, gradients.matrix);
  context.products.multiply(
      input_gradient_of(layer), kept.logits, weights.matrix, scratch.d_normed);
  std::fill_n(pass.stream, layer.rows * layer.in, T{});
  const RmsNormBackward<T> norm = {.x = kept.input,
                                   .weight = weights.norm,
                                   .inverse_rms = kept.inverse_rms,
                                   .dy = scratch.d_normed,
                                   .dx = pass.stream,
                                   .d_weight = gradients.norm,
                                   .column_sums = scratch.column_sums};
  rms_norm_backward(norm, norm_extent(context));
}

template HeadKept<float> carve_head_kept(Carver&, const LlamaShape&, const Extent&);
template void head_logits(const BlockContext<float>&,
                          const HeadWeights<float>&,
                          const HeadKept<float>&);
template double head_loss(const BlockContext<float>&,
                          const HeadKept<float>&,
                          std::span<const std::int32_t>);
template void head_backward(const BlockContext<float>&,
                            const HeadWeights<float>&,
                            const HeadKept<float>&,
                            const HeadGradients<float>&,
                            const HeadBackward<float>&);
template HeadKept<sifr::bfloat16> carve_head_kept(Carver&, const LlamaShape&, const Extent&);
template void head_logits(const BlockContext<sifr::bfloat16>&,
                          const HeadWeights<sifr::bfloat16>&,
                          const HeadKept<sifr::bfloat16>&);
template double head_loss(const BlockContext<sifr::bfloat16>&,
                          const HeadKept<sifr::bfloat16>&,
                          std::span<const std::int32_t>);
template void head_backward(const BlockContext<sifr::bfloat16>&,
                            const HeadWeights<sifr::bfloat16>&,
                            const HeadKept<sifr::bfloat16>&,
                            const HeadGradients<sifr::bfloat16>&,
                            const HeadBackward<sifr::bfloat16>&);

}  // namespace llama
