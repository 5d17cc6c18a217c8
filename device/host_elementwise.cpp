#include "device/detail/element_loops.hpp"
#include "device/detail/float_environment.hpp"
#include "device/detail/host_loops.hpp"
#include "device/detail/sum_loops.hpp"

#include <cstring>

namespace sifr::detail::host {
namespace {

SIFR_CLONES void cast_clones(ConstView from, View to) {
  cast_any(from, to);
}

SIFR_CLONES void scale_clones(View view, float factor) {
  scale_any(view, factor);
}

SIFR_CLONES void sum_clones(std::span<const ConstView> inputs,
                            std::int64_t first,
                            View sum,
                            kernels::Into into) {
  sum_in_order_any(inputs, first, sum, into);
}

}  // namespace

void cast(ConstView from, View to) noexcept {
  if (from.dtype == to.dtype) {
    if (from.data != to.data)
      std::memmove(to.data, from.data, static_cast<std::size_t>(to.bytes()));
    return;
  }
  const FloatEnvironment environment;
  cast_clones(from, to);
}

void fill(View view, std::uint16_t pattern) noexcept {
  if (pattern == 0) {
    std::memset(view.data, 0, static_cast<std::size_t>(view.bytes()));
    return;
  }
  const std::int64_t count = view.bytes() / 2;
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(view.data + 2 * i, &pattern, sizeof(pattern));
}

void scale(View view, float factor) noexcept {
  const FloatEnvironment environment;
  scale_clones(view, factor);
}

void sum_in_order(std::span<const ConstView> inputs,
                  std::int64_t first,
                  View sum,
                  kernels::Into into) noexcept {
  const FloatEnvironment environment;
  sum_clones(inputs, first, sum, into);
}

}  // namespace sifr::detail::host
