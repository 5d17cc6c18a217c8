#include "device/detail/float_environment.hpp"
#include "device/detail/host_loops.hpp"
#include "device/detail/quantum_loops.hpp"

#include <algorithm>
#include <cmath>

namespace sifr::detail::host {
namespace {

SIFR_CLONES void square_sums_clones(const float* values, std::int64_t count, double* sums) {
  square_sums_loop(values, count, sums);
}

SIFR_CLONES void hash_clones(ConstView values,
                             std::int64_t parameter,
                             std::int64_t first,
                             kernels::Hash128& sum) {
  sum = hash_any(values, parameter, first);
}

}  // namespace

void square_sum(ConstView values, kernels::SquareSum& result) noexcept {
  constexpr std::int64_t kBlock = 64;  // quanta whose sums are kept at a time
  const FloatEnvironment environment;
  std::array<double, kBlock> sums;
  for (std::int64_t first = 0; first < values.count; first += kBlock * kernels::kQuantum) {
    const std::int64_t count = std::min(kBlock * kernels::kQuantum, values.count - first);
    square_sums_clones(values.as<float>() + first, count, sums.data());
    for (std::int64_t q = 0; q * kernels::kQuantum < count; ++q) {
      const double sum = sums[static_cast<std::size_t>(q)];
      if (std::isfinite(sum)) {
        result.sum.add(sum);
      } else if (result.first_non_finite < 0) {
        result.first_non_finite = first / kernels::kQuantum + q;
      }
    }
  }
}

void hash(ConstView values,
          std::int64_t parameter,
          std::int64_t first,
          kernels::Hash128& result) noexcept {
  kernels::Hash128 sum;
  hash_clones(values, parameter, first, sum);
  result.add(sum);
}

}  // namespace sifr::detail::host
