#pragma once

#include "../kernels.hpp"
#include "./cache_lines.hpp"
#include "./element_loops.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

/// The ordered sum over ranks.
namespace sifr::detail {

template <class T>
SIFR_INLINE void add_loop(const T* __restrict from, float* __restrict sums, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    sums[i] = sums[i] + load(from[i]);
}

/// The inputs pass by side by side: one pass over memory, at the speed of several streams.
template <int kInputs, bool kAdd, class T>
SIFR_INLINE void sum_loop(std::span<const ConstView> inputs,
                          std::int64_t first,
                          float* out,
                          std::int64_t count) {
  const T* from[kInputs];
  for (std::size_t r = 0; r < kInputs; ++r)
    from[r] = inputs[r].as<T>() + first;
  SIFR_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    float sum = load(from[0][i]);
    for (int r = 1; r < kInputs; ++r)
      sum = sum + load(from[r][i]);
    out[i] = kAdd ? out[i] + sum : sum;
  }
}

template <int kInputs, class T>
SIFR_INLINE void sum_inputs(std::span<const ConstView> inputs,
                            std::int64_t first,
                            float* out,
                            std::int64_t count,
                            kernels::Into into) {
  switch (into) {
    case kernels::Into::kWrite:
      return sum_loop<kInputs, false, T>(inputs, first, out, count);
    case kernels::Into::kWritePastCaches:
      return write_past_caches(
          out, count, [&](std::int64_t begin, std::int64_t length, float* to) SIFR_INLINED {
            sum_loop<kInputs, false, T>(inputs, first + begin, to, length);
          });
    case kernels::Into::kAdd:
      return sum_loop<kInputs, true, T>(inputs, first, out, count);
  }
}

template <class T>
SIFR_INLINE void sum_up_to_four(std::span<const ConstView> inputs,
                                std::int64_t first,
                                float* out,
                                std::int64_t count,
                                kernels::Into into) {
  switch (inputs.size()) {
    case 1:
      return sum_inputs<1, T>(inputs, first, out, count, into);
    case 2:
      return sum_inputs<2, T>(inputs, first, out, count, into);
    case 3:
      return sum_inputs<3, T>(inputs, first, out, count, into);
    default:
      return sum_inputs<4, T>(inputs, first, out, count, into);
  }
}

/// Of more than four inputs, blocks of sums stay in the first cache while the others are added.
/// What is written is little beside what is read, and always goes through the caches.
template <class T>
SIFR_INLINE void sum_in_blocks(std::span<const ConstView> inputs,
                               std::int64_t first,
                               View sum,
                               kernels::Into into) {
  constexpr std::int64_t kBlock = 2048;
  alignas(64) float sums[kBlock];
  for (std::int64_t begin = 0; begin < sum.count; begin += kBlock) {
    const std::int64_t length = std::min(kBlock, sum.count - begin);
    sum_up_to_four<T>(inputs.first(4), first + begin, sums, length, kernels::Into::kWrite);
    for (const ConstView input : inputs.subspan(4))
      add_loop(input.as<T>() + first + begin, sums, length);
    float* const out = sum.as<float>() + begin;
    if (into == kernels::Into::kAdd) {
      add_loop(sums, out, length);
    } else {
      cast_loop(sums, out, length);
    }
  }
}

template <class T>
SIFR_INLINE void sum_of(std::span<const ConstView> inputs,
                        std::int64_t first,
                        View sum,
                        kernels::Into into) {
  if (inputs.size() > 4) return sum_in_blocks<T>(inputs, first, sum, into);
  return sum_up_to_four<T>(inputs, first, sum.as<float>(), sum.count, into);
}

/// sum's elements are [first, first + sum.count) of the inputs. `sum` may be one of them: what is
/// written was read before.
SIFR_INLINE void sum_in_order_any(std::span<const ConstView> inputs,
                                  std::int64_t first,
                                  View sum,
                                  kernels::Into into) {
  switch (inputs[0].dtype) {
    case DType::kFloat32:
      return sum_of<float>(inputs, first, sum, into);
    case DType::kBFloat16:
      return sum_of<bfloat16>(inputs, first, sum, into);
    case DType::kFloat16:
      return sum_of<float16>(inputs, first, sum, into);
  }
}

}  // namespace sifr::detail
