#include "examples/llama/block.hpp"

#include "examples/llama/residual.hpp"
#include "examples/llama/rms_norm.hpp"
#include "examples/llama/swiglu.hpp"

namespace llama {
namespace {

/// The block's linear layers for one micro-batch.
struct Layers {
  Layers(const LlamaShape& shape, std::int64_t tokens)
      : query{tokens, shape.hidden, shape.query_width()},
        key_value{tokens, shape.hidden, shape.kv_width()},
        output{tokens, shape.query_width(), shape.hidden},
        widening{tokens, shape.hidden, shape.intermediate},
        down{tokens, shape.intermediate, shape.hidden} {}
  Linear query;
  Linear key_value;
  Linear output;
  Linear widening;  // gate and up
  Linear down;
};

template <class T>
AttentionContext<T> attention_context(const BlockContext<T>& context) {
  return {
      context.shape, context.extent, context.products, context.rotary, context.scratch.attention};
}

template <class T>
class Pass {
 public:
  Pass(const BlockContext<T>& context, const BlockWeights<T>& weights, const BlockKept<T>& kept)
      : context_(context),
        scratch_(context.scratch),
        weights_(weights),
        kept_(kept),
        layers_(context.shape, context.extent.tokens()) {}

  void attention_forward() const {
    const Projections<T>& to = scratch_.projections;
    rms_norm(kept_.input,
             weights_[kInputNorm],
             context_.shape.rms_eps,
             norm_extent(),
             scratch_.normed,
             kept_.input_inverse_rms);
    multiply(forward_of(layers_.query), scratch_.normed, weights_[kQuery], to.queries);
    multiply(forward_of(layers_.key_value), scratch_.normed, weights_[kKey], to.keys);
    multiply(forward_of(layers_.key_value), scratch_.normed, weights_[kValue], to.values);
    attention(attention_context(context_), to, kept_.attention);
    multiply(
        forward_of(layers_.output), kept_.attention.output, weights_[kOutput], scratch_.branch);
    add_residual(kept_.input, scratch_.branch, stream_count(), kept_.middle);
  }

  void feed_forward() const {
    rms_norm(kept_.middle,
             weights_[kPostNorm],
             context_.shape.rms_eps,
             norm_extent(),
             scratch_.normed,
             kept_.middle_inverse_rms);
    multiply(forward_of(layers_.widening), scratch_.normed, weights_[kGate], kept_.gate);
    multiply(forward_of(layers_.widening), scratch_.normed, weights_[kUp], kept_.up);
  }

  void finish(T* output) const {
    swiglu(kept_.gate, kept_.up, wide_count(), scratch_.activated);
    multiply(forward_of(layers_.down), scratch_.activated, weights_[kDown], scratch_.branch);
    add_residual(kept_.middle, scratch_.branch, stream_count(), output);
  }

  void feed_forward_backward(const BlockGradients<T>& gradients, T* stream) const {
    multiply(input_gradient_of(layers_.down), stream, weights_[kDown], scratch_.d_activated);
    const SwigluBackward<T> swiglu_pass = {
        scratch_.d_activated, kept_.gate, kept_.up, scratch_.activated};
    swiglu_backward(swiglu_pass, wide_count());
    multiply(weight_gradient_of(layers_.down), stream, scratch_.activated, gradients[kDown]);
    rms_norm_again(kept_.middle,
                   weights_[kPostNorm],
                   kept_.middle_inverse_rms,
                   norm_extent(),
                   scratch_.normed);
    multiply(weight_gradient_of(layers_.widening), kept_.gate, scratch_.normed, gradients[kGate]);
    multiply(weight_gradient_of(layers_.widening), kept_.up, scratch_.normed, gradients[kUp]);
    multiply(input_gradient_of(layers_.widening), kept_.gate, weights_[kGate], scratch_.d_normed);
    multiply(input_gradient_of(layers_.widening, true), kept_.up, weights_[kUp], scratch_.d_normed);
    norm_backward(kept_.middle, kept_.middle_inverse_rms, kPostNorm, gradients, stream);
  }

  void attention_backward_into(const BlockGradients<T>& gradients, T* stream) const {
    const Projections<T>& d = scratch_.projections;
    multiply(
        weight_gradient_of(layers_.output), stream, kept_.attention.output, gradients[kOutput]);
    multiply(input_gradient_of(layers_.output), stream, weights_[kOutput], scratch_.d_attention);
    attention_backward(attention_context(context_), kept_.attention, scratch_.d_attention, d);
    rms_norm_again(
        kept_.input, weights_[kInputNorm], kept_.input_inverse_rms, norm_extent(), scratch_.normed);
    multiply(weight_gradient_of(layers_.query), d.queries, scratch_.normed, gradients[kQuery]);
    multiply(weight_gradient_of(layers_.key_value), d.keys, scratch_.normed, gradients[kKey]);
    multiply(weight_gradient_of(layers_.key_value), d.values, scratch_.normed, gradients[kValue]);
    multiply(input_gradient_of(layers_.query), d.queries, weights_[kQuery], scratch_.d_normed);
    multiply(input_gradient_of(layers_.key_value, true), d.keys, weights_[kKey], scratch_.d_normed);
    multiply(
        input_gradient_of(layers_.key_value, true), d.values, weights_[kValue], scratch_.d_normed);
    norm_backward(kept_.input, kept_.input_inverse_rms, kInputNorm, gradients, stream);
  }

 private:
  [[nodiscard]] RmsNormExtent norm_extent() const {
    return {context_.extent.tokens(), context_.shape.hidden};
  }
  [[nodiscard]] std::int64_t stream_count() const {
    return context_.extent.tokens() * context_.shape.hidden;
  }
  [[nodiscard]] std::int64_t wide_count() const {
    return context_.extent.tokens() * context_.shape.intermediate;
  }

  template <class Out>
  void multiply(const Product& product, const T* a, const T* b, Out* c) const {
    context_.products.multiply(product, a, b, c);
  }

  void norm_backward(const T* x,
                     const float* inverse_rms,
                     BlockParameter weight,
                     const BlockGradients<T>& gradients,
                     T* stream) const {
    const RmsNormBackward<T> pass = {.x = x,
                                     .weight = weights_[weight],
                                     .inverse_rms = inverse_rms,
                                     .dy = scratch_.d_normed,
                                     .dx = stream,
                                     .d_weight = gradients[weight],
                                     .column_sums = scratch_.column_sums};
    rms_norm_backward(pass, norm_extent());
  }

  const BlockContext<T>& context_;
  const BlockScratch<T>& scratch_;
  const BlockWeights<T>& weights_;
  const BlockKept<T>& kept_;
  Layers layers_;
};

}  // namespace

template <class T>
BlockKept<T> carve_block_kept(Carver& carver, const LlamaShape& shape, const Extent& extent) {
  const std::int64_t tokens = extent.tokens();
  BlockKept<T> kept;
  kept.input_inverse_rms = carver.take<float>(tokens);
  kept.attention = carve_attention_kept<T>(carver, shape, extent);
  kept.middle = carver.take<T>(tokens * shape.hidden);
  kept.middle_inverse_rms = carver.take<float>(tokens);
  kept.gate = carver.take<T>(tokens * shape.intermediate);
  kept.up = carver.take<T>(tokens * shape.intermediate);
  return kept;
}

template <class T>
BlockScratch<T> carve_block_scratch(Carver& carver, const LlamaShape& shape, const Extent& extent) {
  const std::int64_t tokens = extent.tokens();
  BlockScratch<T> scratch;
  scratch.normed = carver.take<T>(tokens * shape.hidden);
  scratch.branch = carver.take<T>(tokens * shape.hidden);
  scratch.projections.queries = carver.take<T>(tokens * shape.query_width());
  scratch.projections.keys = carver.take<T>(tokens * shape.kv_width());
  scratch.projections.values = carver.take<T>(tokens * shape.kv_width());
  scratch.d_attention = carver.take<T>(tokens * shape.query_width());
  scratch.activated = carver.take<T>(tokens * shape.intermediate);
  scratch.d_activated = carver.take<T>(tokens * shape.intermediate);
  scratch.d_normed = carver.take<float>(tokens * shape.hidden);
  scratch.column_sums = carver.take<double>(shape.hidden);
  scratch.attention = carve_attention_scratch<T>(carver, shape, extent.length);
  return scratch;
}

template <class T>
void block_forward(const BlockContext<T>& context,
                   const BlockWeights<T>& weights,
                   const BlockKept<T>& kept,
                   T* output) {
  const Pass<T> pass(context, weights, kept);
  pass.attention_forward();
  pass.feed_forward();
  pass.finish(output);
}

template <class T>
void block_again(const BlockContext<T>& context,
                 const BlockWeights<T>& weights,
                 const BlockKept<T>& kept) {
  const Pass<T> pass(context, weights, kept);
  pass.attention_forward();
  pass.feed_forward();
}

template <class T>
void block_backward(const BlockContext<T>& context,
                    const BlockWeights<T>& weights,
                    const BlockKept<T>& kept,
                    const BlockGradients<T>& gradients,
                    T* stream) {
  const Pass<T> pass(context, weights, kept);
  pass.feed_forward_backward(gradients, stream);
  pass.attention_backward_into(gradients, stream);
}

template BlockKept<float> carve_block_kept(Carver&, const LlamaShape&, const Extent&);
template BlockScratch<float> carve_block_scratch(Carver&, const LlamaShape&, const Extent&);
template void block_forward(const BlockContext<float>&,
                            const BlockWeights<float>&,
                            const BlockKept<float>&,
                            float*);
template void block_again(const BlockContext<float>&,
                          const BlockWeights<float>&,
                          const BlockKept<float>&);
template void block_backward(const BlockContext<float>&,
                             const BlockWeights<float>&,
                             const BlockKept<float>&,
                             const BlockGradients<float>&,
                             float*);
template BlockKept<sifr::bfloat16> carve_block_kept(Carver&, const LlamaShape&, const Extent&);
template BlockScratch<sifr::bfloat16> carve_block_scratch(Carver&,
                                                          const LlamaShape&,
                                                          const Extent&);
template void block_forward(const BlockContext<sifr::bfloat16>&,
                            const BlockWeights<sifr::bfloat16>&,
                            const BlockKept<sifr::bfloat16>&,
                            sifr::bfloat16*);
template void block_again(const BlockContext<sifr::bfloat16>&,
                          const BlockWeights<sifr::bfloat16>&,
                          const BlockKept<sifr::bfloat16>&);
template void block_backward(const BlockContext<sifr::bfloat16>&,
                             const BlockWeights<sifr::bfloat16>&,
                             const BlockKept<sifr::bfloat16>&,
                             const BlockGradients<sifr::bfloat16>&,
                             sifr::bfloat16*);

}  // namespace llama
