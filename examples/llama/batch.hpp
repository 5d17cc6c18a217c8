#pragma once

#include "examples/llama/extent.hpp"

#include <cstdint>
#include <span>

namespace llama {

/// A micro-batch, owned by somebody else: extent.rows sequences of extent.length + 1 tokens, end to
/// end. Position t of a sequence predicts its token t + 1.
struct TokenBatch {
  std::span<const std::int32_t> tokens;
  Extent extent;
};

}  // namespace llama
