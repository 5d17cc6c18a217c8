#pragma once

#include <cstdint>
#include <vector>

/// Rotary positions (Su et al., 2021): element i of a head's first half turns with element i of its
/// second half by the angle position · theta^(−2i / head_size). Cosines and sines are rounded to T,
/// as in Hugging Face's model.
///
/// Turning is one walk over memory together with the change between two orders of heads:
///
///   tokens  [position][head][element]               as products with weights need them
///   heads   [position][head of the group][element]  as attention needs them: a key head's queries
///                                                   end to end
namespace llama {

class RotaryTable {
 public:
  /// `is_bf16`: round to bfloat16. For positions [0, length).
  RotaryTable(std::int64_t length, std::int64_t head_size, double theta, bool is_bf16);
  [[nodiscard]] std::int64_t half() const noexcept { return half_; }
  [[nodiscard]] const float* cosines(std::int64_t position) const noexcept {
    return cosines_.data() + position * half_;
  }
  [[nodiscard]] const float* sines(std::int64_t position) const noexcept {
    return sines_.data() + position * half_;
  }

 private:
  std::int64_t half_;
  std::vector<float> cosines_;  // [position][half]
  std::vector<float> sines_;
};

/// Consecutive heads of every position.
struct HeadGroup {
  std::int64_t length = 0;  // positions
  std::int64_t count = 1;   // heads of the group
  std::int64_t head_size = 0;
  std::int64_t stride = 0;  // elements from position to position in `tokens`
};

/// heads = tokens; with a table, turned by the position's angles, position `first` being the first.
template <class T>
void split_heads(const T* tokens, const HeadGroup& group, T* heads);
template <class T>
void split_and_turn(const T* tokens,
                    const HeadGroup& group,
                    const RotaryTable& table,
                    std::int64_t first,
                    T* heads);

/// tokens = heads, rounded; with a table, turned back.
template <class T>
void merge_heads(const float* heads, const HeadGroup& group, T* tokens);
template <class T>
void merge_and_turn_back(const float* heads,
                         const HeadGroup& group,
                         const RotaryTable& table,
                         T* tokens);

}  // namespace llama
