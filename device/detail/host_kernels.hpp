#pragma once

#include "./kernels.hpp"

namespace sifr::detail {

/// The kernels of the host: each task cuts its elements into fixed pieces for the stream's helpers.
class HostKernels final : public Kernels {
 public:
  void cast(ConstView from, View to, Stream& stream) override;
  void narrow_in_place(View values, DType to, Stream& stream) override;
  void fill_zero(View view, Stream& stream) override;
  void poison(View view, Stream& stream) override;
  void scale(View view, float factor, Stream& stream) override;
  void sum_in_order(std::span<const ConstView> inputs,
                    View sum,
                    kernels::Into into,
                    Stream& stream) override;
  void square_sum(ConstView values, kernels::SquareSum& result, Stream& stream) override;
  void adam(const kernels::AdamRun& run,
            const kernels::AdamScalars& scalars,
            Stream& stream) override;
  void square_sum(std::span<const ConstView> views,
                  kernels::SquareSum& result,
                  Stream& stream) override;
  void adam(std::span<const kernels::AdamPiece> pieces,
            std::span<const kernels::AdamScalars> groups,
            Stream& stream) override;
  void hash(ConstView values,
            std::int64_t parameter,
            std::int64_t first,
            kernels::Hash128& result,
            Stream& stream) override;
};

}  // namespace sifr::detail
