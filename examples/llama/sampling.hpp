#pragma once

#include <cstdint>
#include <span>

namespace llama {

/// How the next token is picked.
struct Sampling {
  std::int64_t count = 0;  // tokens to generate
  double temperature = 0;  // 0: the likeliest; else drawn from softmax(logits / temperature)
  std::uint64_t seed = 0;  // of the draws
};

/// A token by its logits [vocab]; `draw`: the how-manieth of this seed.
template <class T>
[[nodiscard]] std::int32_t pick(std::span<const T> logits,
                                const Sampling& sampling,
                                std::uint64_t draw);

}  // namespace llama
