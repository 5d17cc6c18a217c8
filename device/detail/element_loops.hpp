#pragma once

#include "../kernels.hpp"
#include "./clones.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

/// Loops over elements without a sum over them: cast, fill, scale, the ordered sum over ranks.
namespace sifr::detail {

SIFR_INLINE float load(float value) {
  return value;
}
SIFR_INLINE float load(bfloat16 value) {
  return to_float(value);
}
SIFR_INLINE float load(float16 value) {
  return to_float(value);
}

SIFR_INLINE void store(float value, float& to) {
  to = value;
}
SIFR_INLINE void store(float value, bfloat16& to) {
  to = to_bfloat16(value);
}
SIFR_INLINE void store(float value, float16& to) {
  to = to_float16(value);
}

template <class From, class To>
SIFR_INLINE void cast_loop(const From* __restrict from, To* __restrict to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    store(load(from[i]), to[i]);
}

template <class From>
SIFR_INLINE void cast_from(const From* from, View to) {
  switch (to.dtype) {
    case DType::kFloat32:
      return cast_loop(from, to.as<float>(), to.count);
    case DType::kBFloat16:
      return cast_loop(from, to.as<bfloat16>(), to.count);
    case DType::kFloat16:
      return cast_loop(from, to.as<float16>(), to.count);
  }
}

SIFR_INLINE void cast_any(ConstView from, View to) {
  switch (from.dtype) {
    case DType::kFloat32:
      return cast_from(from.as<float>(), to);
    case DType::kBFloat16:
      return cast_from(from.as<bfloat16>(), to);
    case DType::kFloat16:
      return cast_from(from.as<float16>(), to);
  }
}

template <class T>
SIFR_INLINE void scale_loop(T* values, std::int64_t count, float factor) {
  for (std::int64_t i = 0; i < count; ++i)
    store(load(values[i]) * factor, values[i]);
}

SIFR_INLINE void scale_any(View view, float factor) {
  switch (view.dtype) {
    case DType::kFloat32:
      return scale_loop(view.as<float>(), view.count, factor);
    case DType::kBFloat16:
      return scale_loop(view.as<bfloat16>(), view.count, factor);
    case DType::kFloat16:
      return scale_loop(view.as<float16>(), view.count, factor);
  }
}

template <class T>
SIFR_INLINE void add_loop(const T* __restrict from, float* __restrict sums, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    sums[i] = sums[i] + load(from[i]);
}

SIFR_INLINE void add_any(ConstView from, float* sums) {
  switch (from.dtype) {
    case DType::kFloat32:
      return add_loop(from.as<float>(), sums, from.count);
    case DType::kBFloat16:
      return add_loop(from.as<bfloat16>(), sums, from.count);
    case DType::kFloat16:
      return add_loop(from.as<float16>(), sums, from.count);
  }
}

/// Blocks of sums stay in the first cache while the inputs pass by, so that memory sees one pass.
/// `sum` may be one of the inputs: a block is written after it was read.
SIFR_INLINE void sum_in_order_any(std::span<const ConstView> inputs,
                                  std::int64_t first,
                                  View sum,
                                  kernels::Into into) {
  constexpr std::int64_t kBlock = 2048;
  alignas(64) float sums[kBlock];
  for (std::int64_t begin = 0; begin < sum.count; begin += kBlock) {
    const std::int64_t length = std::min(kBlock, sum.count - begin);
    const View block{reinterpret_cast<std::byte*>(sums), length, DType::kFloat32};
    cast_any(inputs[0].slice(first + begin, length), block);
    for (std::size_t r = 1; r < inputs.size(); ++r) {
      add_any(inputs[r].slice(first + begin, length), sums);
    }
    float* const out = sum.as<float>() + begin;
    if (into == kernels::Into::kWrite) {
      cast_loop(sums, out, length);
    } else {
      add_loop(sums, out, length);
    }
  }
}

}  // namespace sifr::detail
