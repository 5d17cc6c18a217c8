#pragma once

#include "../kernels.hpp"
#include "./cache_lines.hpp"
#include "./element_loops.hpp"

#include <cmath>
#include <cstdint>

namespace sifr::detail {

/// One element of kernels::adam, in its written order.
template <bool kHasL2>
SIFR_INLINE void adam_element(
    float sum, float& master, float& m, float& v, const kernels::AdamScalars& scalars) {
  float g = sum * scalars.factor;
  float w = master * scalars.decay;
  if constexpr (kHasL2) g = g + scalars.l2 * w;
  m = scalars.beta1 * m + scalars.one_minus_beta1 * g;
  v = scalars.beta2 * v + (scalars.one_minus_beta2 * g) * g;
  w = w - scalars.step_size * (m / (std::sqrt(v) / scalars.root_correction + scalars.eps));
  master = w;
}

template <bool kHasL2, class Weight>
SIFR_INLINE void adam_weights(const float* __restrict sum,
                              float* __restrict master,
                              float* __restrict m,
                              float* __restrict v,
                              Weight* __restrict weight,
                              std::int64_t count,
                              const kernels::AdamScalars& scalars) {
  for (std::int64_t i = 0; i < count; ++i) {
    adam_element<kHasL2>(sum[i], master[i], m[i], v[i], scalars);
    store(master[i], weight[i]);
  }
}

/// `weight` is null where the master is the weight itself.
template <bool kHasL2, class Weight>
SIFR_INLINE void adam_loop(const kernels::AdamRun& run,
                           const kernels::AdamScalars& scalars,
                           Weight* weight) {
  const float* __restrict const sum = run.sum.as<float>();
  float* __restrict const master = run.master.as<float>();
  float* __restrict const m = run.m.as<float>();
  float* __restrict const v = run.v.as<float>();
  const kernels::AdamScalars local = scalars;
  const std::int64_t count = run.master.count;
  if (weight == nullptr) {
    for (std::int64_t i = 0; i < count; ++i)
      adam_element<kHasL2>(sum[i], master[i], m[i], v[i], local);
    return;
  }
  // The weights alone are not read here, nor before everything is updated: past the caches bf16
  // takes 5 to 8 % less time.
  write_past_caches(
      weight, count, [=, &local](std::int64_t first, std::int64_t length, Weight* to) SIFR_INLINED {
        adam_weights<kHasL2>(sum + first, master + first, m + first, v + first, to, length, local);
      });
}

template <bool kHasL2>
SIFR_INLINE void adam_into(const kernels::AdamRun& run, const kernels::AdamScalars& scalars) {
  const DType dtype = run.weight.count > 0 ? run.weight.dtype : DType::kFloat32;
  switch (dtype) {
    case DType::kFloat32:
      return adam_loop<kHasL2>(
          run, scalars, run.weight.count > 0 ? run.weight.as<float>() : nullptr);
    case DType::kBFloat16:
      return adam_loop<kHasL2>(run, scalars, run.weight.as<bfloat16>());
    case DType::kFloat16:
      return adam_loop<kHasL2>(run, scalars, run.weight.as<float16>());
  }
}

SIFR_INLINE void adam_any(const kernels::AdamRun& run, const kernels::AdamScalars& scalars) {
  if (scalars.l2 != 0) {
    adam_into<true>(run, scalars);
  } else {
    adam_into<false>(run, scalars);
  }
}

}  // namespace sifr::detail
