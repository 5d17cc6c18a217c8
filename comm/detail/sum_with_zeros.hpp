#pragma once

#include "device/kernels.hpp"

#include <span>

namespace sifr::detail {

/// kernels::sum_in_order, where an input without data stands for zeros of any dtype. `inputs` is
/// scratch afterwards.
void sum_with_zeros(std::span<ConstView> inputs, View sum, kernels::Into into, Stream& stream);

}  // namespace sifr::detail
