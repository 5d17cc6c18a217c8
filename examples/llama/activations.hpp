#pragma once

#include "examples/llama/block.hpp"
#include "examples/llama/head.hpp"

#include <vector>

namespace llama {

/// All memory of a forward and backward pass beside weights and gradients, as places in one block
/// of memory.
template <class T>
struct Activations {
  std::vector<BlockKept<T>> blocks;
  HeadKept<T> head;
  T* stream = nullptr;  // [tokens][hidden]: the gradient that goes back through the blocks
  BlockScratch<T> scratch;

  /// Where block i's output goes: the input of what follows.
  [[nodiscard]] T* output_of(std::size_t block) const noexcept {
    return block + 1 < blocks.size() ? blocks[block + 1].input : head.input;
  }
};

/// `recompute`: the blocks keep their inputs only and share the rest.
template <class T>
[[nodiscard]] Activations<T> carve_activations(Carver& carver,
                                               const LlamaShape& shape,
                                               const Extent& extent,
                                               bool recompute) {
  Activations<T> activations;
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const bool shares = recompute && i > 0;
    BlockKept<T> kept =
        shares ? activations.blocks.front() : carve_block_kept<T>(carver, shape, extent);
    kept.input = carver.take<T>(extent.tokens() * shape.hidden);
    activations.blocks.push_back(kept);
  }
  activations.head = carve_head_kept<T>(carver, shape, extent);
  activations.stream = carver.take<T>(extent.tokens() * shape.hidden);
  activations.scratch = carve_block_scratch<T>(carver, shape, extent);
  return activations;
}

}  // namespace llama
