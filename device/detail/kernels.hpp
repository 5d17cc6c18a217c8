#pragma once

#include "../kernels.hpp"

#include <cstdint>
#include <span>

namespace sifr::detail {

/// The kernels of one kind of device, behind the checked functions of sifr::kernels: each enqueues
/// its work on a stream of that kind. Arguments are correct, counts may be 0.
class Kernels {
 public:
  Kernels() = default;
  virtual ~Kernels() = default;
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  virtual void cast(ConstView from, View to, Stream& stream) = 0;
  virtual void narrow_in_place(View values, DType to, Stream& stream) = 0;
  virtual void fill_zero(View view, Stream& stream) = 0;
  virtual void poison(View view, Stream& stream) = 0;
  virtual void scale(View view, float factor, Stream& stream) = 0;
  virtual void sum_in_order(std::span<const ConstView> inputs,
                            View sum,
                            kernels::Into into,
                            Stream& stream) = 0;
  virtual void square_sum(ConstView values, kernels::SquareSum& result, Stream& stream) = 0;
  virtual void adam(const kernels::AdamRun& run,
                    const kernels::AdamScalars& scalars,
                    Stream& stream) = 0;
  virtual void square_sum(std::span<const ConstView> views,
                          kernels::SquareSum& result,
                          Stream& stream) = 0;
  virtual void adam(std::span<const kernels::AdamPiece> pieces,
                    std::span<const kernels::AdamScalars> groups,
                    Stream& stream) = 0;
  virtual void hash(ConstView values,
                    std::int64_t parameter,
                    std::int64_t first,
                    kernels::Hash128& result,
                    Stream& stream) = 0;
};

}  // namespace sifr::detail
