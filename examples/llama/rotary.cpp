#include "examples/llama/rotary.hpp"

#include "examples/llama/element.hpp"

#include <cmath>

namespace llama {
namespace {

struct Angles {
  const float* cosines;
  const float* sines;
  std::int64_t half;
};

/// `sign` −1 turns back.
template <class From, class T>
LLAMA_INLINE void turn(const From* __restrict from,
                       const Angles& angles,
                       float sign,
                       T* __restrict to) {
  const std::int64_t half = angles.half;
  const float* __restrict cosines = angles.cosines;
  const float* __restrict sines = angles.sines;
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = widen(from[i]);
    const float b = widen(from[i + half]);
    const float sine = sign * sines[i];
    to[i] = narrow<T>(a * cosines[i] - b * sine);
    to[i + half] = narrow<T>(b * cosines[i] + a * sine);
  }
}

template <class From, class T>
LLAMA_INLINE void copy(const From* __restrict from, std::int64_t count, T* __restrict to) {
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = narrow<T>(widen(from[i]));
}

/// One walk over a group. Strides are in elements from position to position; a null table only
/// copies.
struct Walk {
  HeadGroup group;
  std::int64_t from_stride;
  std::int64_t to_stride;
  const RotaryTable* table;
  std::int64_t first;
  float sign;
};

template <class From, class T>
LLAMA_INLINE void walk(const From* from, const Walk& w, T* to) {
  const std::int64_t size = w.group.head_size;
  for (std::int64_t position = 0; position < w.group.length;
       ++position, from += w.from_stride, to += w.to_stride) {
    if (w.table == nullptr) {
      copy(from, w.group.count * size, to);
      continue;
    }
    const std::int64_t place = w.first + position;
    const Angles angles = {w.table->cosines(place), w.table->sines(place), w.table->half()};
    for (std::int64_t head = 0; head < w.group.count; ++head)
      turn(from + head * size, angles, w.sign, to + head * size);
  }
}

LLAMA_CLONES void walk_fp32(const float* from, const Walk& w, float* to) {
  walk(from, w, to);
}
LLAMA_CLONES void walk_bf16(const bfloat16* from, const Walk& w, bfloat16* to) {
  walk(from, w, to);
}
LLAMA_CLONES void walk_fp32_to_bf16(const float* from, const Walk& w, bfloat16* to) {
  walk(from, w, to);
}

void start(const float* from, const Walk& w, float* to) {
  walk_fp32(from, w, to);
}
void start(const bfloat16* from, const Walk& w, bfloat16* to) {
  walk_bf16(from, w, to);
}
void start(const float* from, const Walk& w, bfloat16* to) {
  walk_fp32_to_bf16(from, w, to);
}

Walk splitting(const HeadGroup& group, const RotaryTable* table, std::int64_t first) {
  return {group, group.stride, group.count * group.head_size, table, first, 1.0F};
}

Walk merging(const HeadGroup& group, const RotaryTable* table) {
  return {group, group.count * group.head_size, group.stride, table, 0, -1.0F};
}

}  // namespace

RotaryTable::RotaryTable(std::int64_t length, std::int64_t head_size, double theta, bool is_bf16)
    : half_(head_size / 2) {
  const auto stored = [is_bf16](double value) {
    const auto single = static_cast<float>(value);
    return is_bf16 ? rounded_to<bfloat16>(single) : single;
  };
  for (std::int64_t position = 0; position < length; ++position) {
    for (std::int64_t i = 0; i < half_; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(head_size);
      const double angle = static_cast<double>(position) * std::pow(theta, exponent);
      cosines_.push_back(stored(std::cos(angle)));
      sines_.push_back(stored(std::sin(angle)));
    }
  }
}

template <class T>
void split_heads(const T* tokens, const HeadGroup& group, T* heads) {
  start(tokens, splitting(group, nullptr, 0), heads);
}

template <class T>
void split_and_turn(const T* tokens,
                    const HeadGroup& group,
                    const RotaryTable& table,
                    std::int64_t first,
                    T* heads) {
  start(tokens, splitting(group, &table, first), heads);
}

template <class T>
void merge_heads(const float* heads, const HeadGroup& group, T* tokens) {
  start(heads, merging(group, nullptr), tokens);
}

template <class T>
void merge_and_turn_back(const float* heads,
                         const HeadGroup& group,
                         const RotaryTable& table,
                         T* tokens) {
  start(heads, merging(group, &table), tokens);
}

template void split_heads(const float*, const HeadGroup&, float*);
template void split_heads(const bfloat16*, const HeadGroup&, bfloat16*);
template void split_and_turn(
    const float*, const HeadGroup&, const RotaryTable&, std::int64_t, float*);
template void split_and_turn(
    const bfloat16*, const HeadGroup&, const RotaryTable&, std::int64_t, bfloat16*);
template void merge_heads(const float*, const HeadGroup&, float*);
template void merge_heads(const float*, const HeadGroup&, bfloat16*);
template void merge_and_turn_back(const float*, const HeadGroup&, const RotaryTable&, float*);
template void merge_and_turn_back(const float*, const HeadGroup&, const RotaryTable&, bfloat16*);

}  // namespace llama
