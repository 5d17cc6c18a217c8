#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace llama {

/// x[i] = table[tokens[i]], rows of `width` elements. The caller has checked the tokens.
template <class T>
void embed(const T* table, std::span<const std::int32_t> tokens, std::int64_t width, T* x);

/// The way back: d_table[token] += Σ dx[i] over the places i where the token stands, in the order
/// of the places, summed in fp32 and rounded once a table row.
template <class T>
class EmbeddingBackward {
 public:
  /// For up to `places` tokens of `width` elements: a call allocates nothing then.
  EmbeddingBackward(std::int64_t places, std::int64_t width);
  void run(std::span<const std::int32_t> tokens, const T* dx, T* d_table);

 private:
  std::vector<std::int32_t> order_;  // places, sorted by token
  std::vector<float> sum_;           // [width]
};

}  // namespace llama
