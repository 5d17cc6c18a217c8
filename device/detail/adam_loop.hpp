#pragma once

#include "../kernels.hpp"
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

/// `weight` is null where the master is the weight itself.
template <bool kHasL2, class Weight>
SIFR_INLINE void adam_loop(const kernels::AdamRun& run,
                           const kernels::AdamScalars& scalars,
                           Weight* __restrict weight) {
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
  for (std::int64_t i = 0; i < count; ++i) {
    adam_element<kHasL2>(sum[i], master[i], m[i], v[i], local);
    store(master[i], weight[i]);
  }
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
