#include "tests/device/kernel_variants.hpp"

#include "device/detail/adam_loop.hpp"
#include "device/detail/element_loops.hpp"
#include "device/detail/quantum_loops.hpp"
#include "device/detail/sum_loops.hpp"

// The loops are inlined into a function for each level, as SIFR_CLONES does it.
#define SIFR_VARIANT(level, attribute)                                                 \
  namespace level {                                                                    \
  attribute void cast(sifr::ConstView from, sifr::View to) {                           \
    sifr::detail::cast_any(from, to);                                                  \
  }                                                                                    \
  attribute void scale(sifr::View view, float factor) {                                \
    sifr::detail::scale_any(view, factor);                                             \
  }                                                                                    \
  attribute void sum_in_order(std::span<const sifr::ConstView> inputs,                 \
                              std::int64_t first,                                      \
                              sifr::View sum,                                          \
                              sifr::kernels::Into into) {                              \
    sifr::detail::sum_in_order_any(inputs, first, sum, into);                          \
  }                                                                                    \
  attribute void adam(const sifr::kernels::AdamRun& run,                               \
                      const sifr::kernels::AdamScalars& scalars) {                     \
    sifr::detail::adam_any(run, scalars);                                              \
  }                                                                                    \
  attribute void square_sums(const float* values, std::int64_t count, double* sums) {  \
    sifr::detail::square_sums_loop(values, count, sums);                               \
  }                                                                                    \
  attribute sifr::kernels::Hash128 hash(sifr::ConstView values,                        \
                                        std::int64_t parameter,                        \
                                        std::int64_t first) {                          \
    return sifr::detail::hash_any(values, parameter, first);                           \
  }                                                                                    \
  sifr::test::KernelVariant variant(bool is_supported) {                               \
    return {#level, is_supported, cast, scale, sum_in_order, adam, square_sums, hash}; \
  }                                                                                    \
  }

namespace {
SIFR_VARIANT(plain, __attribute__((noinline)))
#ifdef __x86_64__
SIFR_VARIANT(x86_64_v3, __attribute__((noinline, target("arch=x86-64-v3"))))
SIFR_VARIANT(x86_64_v4, __attribute__((noinline, target("arch=x86-64-v4"))))
#endif
}  // namespace

namespace sifr::test {

std::vector<KernelVariant> kernel_variants() {
  std::vector<KernelVariant> variants = {plain::variant(true)};
#ifdef __x86_64__
  const bool has_v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
                      __builtin_cpu_supports("fma");
  const bool has_v4 = has_v3 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  variants.push_back(x86_64_v3::variant(has_v3));
  variants.push_back(x86_64_v4::variant(has_v4));
#endif
  return variants;
}

}  // namespace sifr::test
