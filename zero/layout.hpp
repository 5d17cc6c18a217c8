#pragma once

#include "../device/dtype.hpp"
#include "../device/kernels.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sifr {

/// The atom of layout, norms and hashes, in elements: no quantum straddles a parameter or a slice.
using kernels::kQuantum;
/// A rank's arena is padded once to this many elements.
inline constexpr std::int64_t kArenaPadding = 4096;

struct ParameterSpec {
  std::string name = {};
  std::vector<std::int64_t> shape = {};
  std::int64_t count = 0;
  DType weights = DType::kFloat32;
  DType gradients = DType::kFloat32;
  bool trainable = true;
  bool decay = true;
  float lr_scale = 1;
};

struct UnitSpec {
  std::string name = {};
  std::vector<ParameterSpec> parameters = {};
  int gradient_leases = 1;
};

/// A parameter's place: elements [first, first + count) of its segment; `first` is a multiple of
/// the quantum.
struct ParameterLayout {
  ParameterSpec spec = {};
  int index = 0;  // in declaration order over the whole model
  int segment = 0;
  std::int64_t first = 0;
};

/// The parameters of a unit with one dtype and one fate, one after another, padded to size() · 256
/// elements.
///
///   whole:  | slice 0 | slice 1 | … | slice size-1 |        slice r belongs to rank r
struct SegmentLayout {
  DType weights = DType::kFloat32;
  DType gradients = DType::kFloat32;
  bool trainable = true;
  std::vector<int> parameters = {};  // of the unit
  std::int64_t count = 0;            // elements of the whole, padding included
  std::int64_t slice_count = 0;      // count / group size
  std::int64_t weight_offset = 0;    // bytes into the unit's whole weights
  std::int64_t gradient_offset = 0;  // bytes into the unit's gradient buffer
  std::int64_t shard_offset = 0;     // bytes into the rank's weight shards
  std::int64_t arena_first = -1;     // elements into the rank's arena of trainable slices
  std::int64_t sum_first = 0;        // elements into the unit's trainable wholes
};

struct UnitLayout {
  std::string name = {};
  int gradient_leases = 1;
  std::vector<ParameterLayout> parameters = {};
  std::vector<SegmentLayout> segments = {};
  std::int64_t elements = 0;        // without padding
  std::int64_t weight_bytes = 0;    // of the whole, padded
  std::int64_t gradient_bytes = 0;  // of the whole, padded; 0 for a frozen unit
  std::int64_t weight_offset = 0;   // bytes into the rank's memory for all wholes
  std::int64_t sum_first = 0;       // elements into the model's trainable wholes
  std::int64_t sum_count = 0;       // elements of the unit's trainable wholes
};

/// A stretch of one parameter inside a segment.
struct Stretch {
  int unit = 0;
  int segment = 0;
  int parameter = 0;                 // of the unit
  std::int64_t parameter_first = 0;  // element of the parameter
  std::int64_t segment_first = 0;    // element of the segment's whole
  std::int64_t count = 0;
};

/// Who owns which elements: a function of model, dtypes and group size only, never of stage, bucket
/// or tier. A rank's trainable slices lie end to end in its arena, in declaration order.
class Layout {
 public:
  Layout(const std::vector<UnitSpec>& units, int group_size);

  [[nodiscard]] const std::vector<UnitLayout>& units() const noexcept { return units_; }
  [[nodiscard]] const UnitLayout& unit(int index) const {
    return units_[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] int unit_count() const noexcept { return static_cast<int>(units_.size()); }
  [[nodiscard]] int group_size() const noexcept { return group_size_; }
  [[nodiscard]] int parameter_count() const noexcept { return parameter_count_; }
  /// Elements of a rank's arena, padded to kArenaPadding; of all ranks' arenas together without
  /// that padding.
  [[nodiscard]] std::int64_t arena_count() const noexcept { return arena_count_; }
  [[nodiscard]] std::int64_t trainable_count() const noexcept { return trainable_count_; }
  /// Of all wholes, and of one rank's slices.
  [[nodiscard]] std::int64_t weight_bytes() const noexcept { return weight_bytes_; }
  [[nodiscard]] std::int64_t shard_bytes() const noexcept { return shard_bytes_; }
  /// Of all wholes.
  [[nodiscard]] std::int64_t gradient_bytes() const noexcept { return gradient_bytes_; }

  /// Calls f(stretch) for the parameters' stretches in elements [first, last) of a segment's whole,
  /// in order, padding left out.
  template <class F>
  void for_each_stretch(
      int unit_index, int segment_index, std::int64_t first, std::int64_t last, F&& f) const {
    const UnitLayout& owner = unit(unit_index);
    for (const int p : owner.segments[static_cast<std::size_t>(segment_index)].parameters) {
      const ParameterLayout& parameter = owner.parameters[static_cast<std::size_t>(p)];
      const std::int64_t begin = std::max(first, parameter.first);
      const std::int64_t end = std::min(last, parameter.first + parameter.spec.count);
      if (begin >= end) continue;
      f(Stretch{unit_index, segment_index, p, begin - parameter.first, begin, end - begin});
    }
  }
  /// The same as a list.
  [[nodiscard]] std::vector<Stretch> stretches(int unit,
                                               int segment,
                                               std::int64_t first,
                                               std::int64_t last) const;
  /// A 64-bit fingerprint of names, shapes, dtypes and group size: equal on ranks that declared the
  /// same model.
  [[nodiscard]] std::uint64_t fingerprint() const;

 private:
  void place(UnitLayout& unit, const UnitSpec& spec);
  std::vector<UnitLayout> units_;
  int group_size_;
  int parameter_count_ = 0;
  std::int64_t arena_count_ = 0;
  std::int64_t trainable_count_ = 0;
  std::int64_t weight_bytes_ = 0;
  std::int64_t shard_bytes_ = 0;
  std::int64_t gradient_bytes_ = 0;
};

[[nodiscard]] constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace sifr
