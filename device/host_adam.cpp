#include "device/detail/adam_loop.hpp"
#include "device/detail/float_environment.hpp"
#include "device/detail/host_loops.hpp"

namespace sifr::detail::host {
namespace {

SIFR_CLONES void adam_clones(const kernels::AdamRun& run, const kernels::AdamScalars& scalars) {
  adam_any(run, scalars);
}

}  // namespace

void adam(const kernels::AdamRun& run, const kernels::AdamScalars& scalars) noexcept {
  const FloatEnvironment environment;
  adam_clones(run, scalars);
}

}  // namespace sifr::detail::host
