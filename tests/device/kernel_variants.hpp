#pragma once

#include "device/kernels.hpp"

#include <span>
#include <vector>

namespace sifr::test {

/// The library's loops, compiled for one level of x86-64 as its clones are.
struct KernelVariant {
  const char* name;
  bool is_supported;  // by this machine
  void (*cast)(ConstView from, View to);
  void (*scale)(View view, float factor);
  void (*sum_in_order)(std::span<const ConstView> inputs,
                       std::int64_t first,
                       View sum,
                       kernels::Into into);
  void (*adam)(const kernels::AdamRun& run, const kernels::AdamScalars& scalars);
  void (*square_sums)(const float* values, std::int64_t count, double* sums);
  kernels::Hash128 (*hash)(ConstView values, std::int64_t parameter, std::int64_t first);
};

/// The plainest first.
std::vector<KernelVariant> kernel_variants();

}  // namespace sifr::test
