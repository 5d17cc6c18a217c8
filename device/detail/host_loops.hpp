#pragma once

#include "../kernels.hpp"

#include <cstdint>
#include <span>

/// The host's kernels for one piece, on the calling thread. Their sources (KERNELS in
/// CMakeLists.txt) are built without contraction and hold a clone of each loop for each level of
/// vectors; all give the same bits.
namespace sifr::detail::host {

void cast(ConstView from, View to) noexcept;
void fill(View view, std::uint16_t pattern) noexcept;
void scale(View view, float factor) noexcept;
/// sum's elements are [first, first + sum.count) of the inputs.
void sum_in_order(std::span<const ConstView> inputs,
                  std::int64_t first,
                  View sum,
                  kernels::Into into) noexcept;
/// Adds to `result`, whose quanta count from the piece's start.
void square_sum(ConstView values, kernels::SquareSum& result) noexcept;
void adam(const kernels::AdamRun& run, const kernels::AdamScalars& scalars) noexcept;
/// Adds to `result`.
void hash(ConstView values,
          std::int64_t parameter,
          std::int64_t first,
          kernels::Hash128& result) noexcept;

}  // namespace sifr::detail::host
