#include "device/kernels.hpp"

#include "device/detail/check.hpp"
#include "device/detail/kernels.hpp"

namespace sifr::kernels {
namespace {

void require_fp32(ConstView view, const char* kernel, const char* name) {
  SIFR_REQUIRE(UsageError,
               view.dtype == DType::kFloat32,
               "{}: {} is {}, needs fp32",
               kernel,
               name,
               name_of(view.dtype));
}

void require_count(ConstView view, std::int64_t count, const char* kernel, const char* name) {
  SIFR_REQUIRE(UsageError,
               view.count == count,
               "{}: {} has {} elements, needs {}",
               kernel,
               name,
               view.count,
               count);
}

void require_size(ConstView view, const char* kernel, const char* name) {
  SIFR_REQUIRE(UsageError,
               view.count == 0 || (view.count > 0 && view.data != nullptr),
               "{}: {} has {} elements at address {}",
               kernel,
               name,
               view.count,
               static_cast<const void*>(view.data));
}

void require_match(const AdamRun& run) {
  require_size(run.master, "adam", "master");
  for (const auto& [view, name] : {std::pair<ConstView, const char*>{run.sum, "sum"},
                                   {run.master, "master"},
                                   {run.m, "m"},
                                   {run.v, "v"}}) {
    require_fp32(view, "adam", name);
    require_count(view, run.master.count, "adam", name);
    require_size(view, "adam", name);
  }
  if (run.weight.count != 0) require_count(run.weight, run.master.count, "adam", "weight");
}

void require_one_decay(const AdamScalars& scalars) {
  SIFR_REQUIRE(UsageError,
               scalars.decay == 1 || scalars.l2 == 0,
               "adam: decay is {} and l2 is {}: weight decay is either decoupled or L2",
               scalars.decay,
               scalars.l2);
}

}  // namespace

void cast(ConstView from, View to, Stream& stream) {
  require_size(from, "cast", "from");
  require_size(to, "cast", "to");
  require_count(to, from.count, "cast", "to");
  if (to.count > 0) stream.kernels().cast(from, to, stream);
}

void narrow_in_place(View values, DType to, Stream& stream) {
  require_fp32(values, "narrow_in_place", "the view");
  require_size(values, "narrow_in_place", "the view");
  SIFR_REQUIRE(UsageError, to != DType::kFloat32, "narrow_in_place: needs a 16-bit type, not fp32");
  if (values.count > 0) stream.kernels().narrow_in_place(values, to, stream);
}

void fill_zero(View view, Stream& stream) {
  require_size(view, "fill_zero", "the view");
  if (view.count > 0) stream.kernels().fill_zero(view, stream);
}

void scale(View view, float factor, Stream& stream) {
  require_size(view, "scale", "the view");
  if (view.count > 0) stream.kernels().scale(view, factor, stream);
}

void sum_in_order(std::span<const ConstView> inputs, View sum, Into into, Stream& stream) {
  SIFR_REQUIRE(UsageError, !inputs.empty(), "sum_in_order: there is no input, needs 1 or more");
  require_fp32(sum, "sum_in_order", "the sum");
  require_size(sum, "sum_in_order", "the sum");
  for (const ConstView input : inputs) {
    require_size(input, "sum_in_order", "an input");
    require_count(input, sum.count, "sum_in_order", "an input");
    SIFR_REQUIRE(UsageError,
                 input.dtype == inputs[0].dtype,
                 "sum_in_order: inputs are {} and {}, need one dtype",
                 name_of(inputs[0].dtype),
                 name_of(input.dtype));
  }
  if (sum.count > 0) stream.kernels().sum_in_order(inputs, sum, into, stream);
}

void poison(View view, Stream& stream) {
  require_size(view, "poison", "the view");
  if (view.count > 0) stream.kernels().poison(view, stream);
}

void square_sum(ConstView values, SquareSum& result, Stream& stream) {
  require_fp32(values, "square_sum", "the view");
  require_size(values, "square_sum", "the view");
  if (values.count > 0) stream.kernels().square_sum(values, result, stream);
}

void square_sum(std::span<const ConstView> views, SquareSum& result, Stream& stream) {
  for (const ConstView view : views) {
    require_fp32(view, "square_sum", "a view");
    require_size(view, "square_sum", "a view");
  }
  if (!views.empty()) stream.kernels().square_sum(views, result, stream);
}

void adam(const AdamRun& run, const AdamScalars& scalars, Stream& stream) {
  require_match(run);
  require_one_decay(scalars);
  if (run.master.count > 0) stream.kernels().adam(run, scalars, stream);
}

void adam(std::span<const AdamPiece> pieces, std::span<const AdamScalars> groups, Stream& stream) {
  for (const AdamPiece& piece : pieces) {
    require_match(piece.run);
    SIFR_REQUIRE(UsageError,
                 piece.group < groups.size(),
                 "adam: a piece is of group {}, there are {}",
                 piece.group,
                 groups.size());
  }
  for (const AdamScalars& scalars : groups)
    require_one_decay(scalars);
  if (!pieces.empty()) stream.kernels().adam(pieces, groups, stream);
}

void Hash128::add(const Hash128& other) noexcept {
  low += other.low;
  high += other.high + (low < other.low ? 1 : 0);
}

std::string Hash128::to_string() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

void hash(
    ConstView values, std::int64_t parameter, std::int64_t first, Hash128& result, Stream& stream) {
  require_size(values, "hash", "the view");
  SIFR_REQUIRE(UsageError,
               first >= 0 && first % kQuantum == 0,
               "hash: the first element is {}, needs a multiple of {}",
               first,
               kQuantum);
  if (values.count > 0) stream.kernels().hash(values, parameter, first, result, stream);
}

}  // namespace sifr::kernels
