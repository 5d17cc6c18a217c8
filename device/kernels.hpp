#pragma once

#include "./exact_sum.hpp"
#include "./stream.hpp"
#include "./view.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>

/// The element-wise work of training. Every kernel is plain IEEE arithmetic in a written order,
/// without contraction, and gives the same bits on every thread count, alignment and vector width.
/// Each is enqueued on `stream`; what the views and spans name must live until then. Counts may be
/// 0; where two views must match, both numbers stand in the error.
namespace sifr::kernels {

/// Elements that layout, norms and hashes count in.
inline constexpr std::int64_t kQuantum = 256;
/// Elements that a thread takes at a time: many against the cost of drawing them, few against a
/// large parameter. Whole quanta.
inline constexpr std::int64_t kGrain = 128 * kQuantum;

/// to = from, rounded to nearest even where the target is narrower. Counts equal; the views may be
/// the same memory only if the dtypes are equal.
SIFR_API void cast(ConstView from, View to, Stream& stream);

/// The first values.count elements of type `to` at values.data become `values` (fp32), rounded to
/// nearest even; the rest of the memory is undefined. `to` is a 16-bit type.
SIFR_API void narrow_in_place(View values, DType to, Stream& stream);

SIFR_API void fill_zero(View view, Stream& stream);

/// view *= factor (fp32; one rounding).
SIFR_API void scale(View view, float factor, Stream& stream);

/// Rule of the sum over ranks: s = fp32(inputs[0]); s = s + fp32(inputs[r]) for r = 1, 2, …; then
/// kWrite: sum = s. kAdd: sum = sum + s. `sum` is fp32; the inputs share one dtype and sum's count.
/// kWritePastCaches: as kWrite, for sums that the caches could not keep until they are read.
enum class Into : std::uint8_t { kWrite, kWritePastCaches, kAdd };
SIFR_API void sum_in_order(std::span<const ConstView> inputs, View sum, Into into, Stream& stream);

/// Poisons memory that nobody may read: signalling-looking NaNs in every dtype.
SIFR_API void poison(View view, Stream& stream);

/// Σ x² of fp32 values, exactly (see ExactSum): quanta of 256 elements from the view's start, each
/// in 32 fixed fp64 lanes and a halving tree, added as integers. A last quantum may be short.
/// `first_non_finite` becomes the index of the first quantum whose sum is not finite (such quanta
/// are not added), else stays as it is if that is smaller; start it with -1 for "none". Both are
/// written when the stream gets there; on a caller stream at return.
struct SquareSum {
  ExactSum sum = {};
  std::int64_t first_non_finite = -1;
};
SIFR_API void square_sum(ConstView values, SquareSum& result, Stream& stream);
/// The same over several views, shared out among threads once: `first_non_finite` is the index of a
/// view. Best of kGrain elements or less each.
SIFR_API void square_sum(std::span<const ConstView> views, SquareSum& result, Stream& stream);

/// One update of Adam (Kingma and Ba, 2014) or AdamW (Loshchilov and Hutter, 2017), the scalars
/// already rounded to fp32: with k = updates from 1, each computed in fp64 and rounded once.
struct AdamScalars {
  float factor = 1;           // g = sum · factor: unscaling, averaging and clipping in one product
  float beta1 = 0.9F;         // β1
  float one_minus_beta1 = 0;  // 1 − β1
  float beta2 = 0.999F;       // β2
  float one_minus_beta2 = 0;  // 1 − β2
  float step_size = 0;        // a = lr / (1 − β1ᵏ), or lr without bias correction
  float root_correction = 1;  // q = √(1 − β2ᵏ), or 1
  float eps = 1e-8F;
  float decay = 1;  // decoupled: d = 1 − lr·wd, multiplies the master first
  float l2 = 0;     // else: wd, g = g + wd·w; 0 for decoupled
};
/// A stretch of one parameter. All views have one count; master, m, v and sum are fp32; `sum` is
/// read only. `weight` receives the master rounded to its dtype; an empty view (count 0) where the
/// master is the weight itself.
struct AdamRun {
  ConstView sum = {};
  View master = {};
  View m = {};
  View v = {};
  View weight = {};
};
/// Per element, fp32, in this order: g = sum·f; decoupled: w = w·d, L2: g = g + wd·w; m = β1·m +
/// (1−β1)·g; v = β2·v + ((1−β2)·g)·g; w = w − a·(m/(√v/q + eps)); weight = round(w). One pass over
/// memory.
SIFR_API void adam(const AdamRun& run, const AdamScalars& scalars, Stream& stream);

/// A run whose scalars are those of its group.
struct AdamPiece {
  AdamRun run = {};
  std::size_t group = 0;
};
/// The same for several runs, shared out among threads once: to wake helpers for each takes longer
/// than to update a small parameter. Best of kGrain elements or less each.
SIFR_API void adam(std::span<const AdamPiece> pieces,
                   std::span<const AdamScalars> groups,
                   Stream& stream);

/// A sum of 128-bit hashes mod 2¹²⁸, one for each quantum of (parameter, index of its first
/// element, the raw bytes): equal for equal weights however they are cut, as long as the cuts fall
/// on quanta. Words: low, high.
struct SIFR_API Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  void add(const Hash128& other) noexcept;
  /// 32 hex digits, the highest first.
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};
/// Adds the hashes of `values`' quanta; `first` is the index in the parameter of the view's first
/// element, a multiple of 256. A last quantum may be short. Algorithm: docs/numerics.md.
SIFR_API void hash(
    ConstView values, std::int64_t parameter, std::int64_t first, Hash128& result, Stream& stream);

}  // namespace sifr::kernels
