#pragma once

#include "examples/llama/attention.hpp"

/// One transformer block: x + attention(norm(x)), then that + feed-forward(norm(that)); its weights
/// and gradients are plain pointers, so that the same code runs on the engine's leases and on
/// memory of one's own.
namespace llama {

/// In the order in which the block's unit declares them.
enum BlockParameter : int {
  kInputNorm,
  kQuery,
  kKey,
  kValue,
  kOutput,
  kPostNorm,
  kGate,
  kUp,
  kDown
};
inline constexpr int kBlockParameters = 9;

/// Matrices lie [out][in]. Element: const T for weights, T for gradients.
template <class Element>
struct BlockPointers {
  Element* data[kBlockParameters] = {};
  Element* operator[](BlockParameter parameter) const noexcept { return data[parameter]; }
};
template <class T>
using BlockWeights = BlockPointers<const T>;
/// Matrices are written; the norms' are added to.
template <class T>
using BlockGradients = BlockPointers<T>;

/// What the way back needs of the way there.
template <class T>
struct BlockKept {
  T* input = nullptr;                  // [tokens][hidden]
  float* input_inverse_rms = nullptr;  // [tokens]
  AttentionKept<T> attention = {};
  T* middle = nullptr;  // [tokens][hidden]: the stream between attention and feed-forward
  float* middle_inverse_rms = nullptr;  // [tokens]
  T* gate = nullptr;                    // [tokens][intermediate]; used up by backward
  T* up = nullptr;                      // [tokens][intermediate]; used up by backward
};

/// Memory that lives for one call.
template <class T>
struct BlockScratch {
  T* normed = nullptr;  // [tokens][hidden]
  T* branch = nullptr;  // [tokens][hidden]
  Projections<T> projections = {};
  T* d_attention = nullptr;       // [tokens][query width]
  T* activated = nullptr;         // [tokens][intermediate]
  T* d_activated = nullptr;       // [tokens][intermediate]
  float* d_normed = nullptr;      // [tokens][hidden]
  double* column_sums = nullptr;  // [hidden]
  AttentionScratch<T> attention = {};
};

/// All but `input`, which is the output of the block before.
template <class T>
[[nodiscard]] BlockKept<T> carve_block_kept(Carver& carver,
                                            const LlamaShape& shape,
                                            const Extent& extent);
template <class T>
[[nodiscard]] BlockScratch<T> carve_block_scratch(Carver& carver,
                                                  const LlamaShape& shape,
                                                  const Extent& extent);

template <class T>
struct BlockContext {
  const LlamaShape& shape;
  Extent extent;
  MatrixProducts& products;
  const RotaryTable& rotary;
  const BlockScratch<T>& scratch;
};

/// Reads kept.input, fills the rest of `kept`, writes output[tokens][hidden].
template <class T>
void block_forward(const BlockContext<T>& context,
                   const BlockWeights<T>& weights,
                   const BlockKept<T>& kept,
                   T* output);

/// Fills `kept` once more, the same bits, from kept.input alone: for a caller that kept nothing
/// else.
template <class T>
void block_again(const BlockContext<T>& context,
                 const BlockWeights<T>& weights,
                 const BlockKept<T>& kept);

/// `stream` comes as the gradient of the output and leaves as the gradient of the input.
template <class T>
void block_backward(const BlockContext<T>& context,
                    const BlockWeights<T>& weights,
                    const BlockKept<T>& kept,
                    const BlockGradients<T>& gradients,
                    T* stream);

}  // namespace llama
