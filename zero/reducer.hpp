#pragma once

#include "../comm/communicator.hpp"
#include "./gradient_memory.hpp"
#include "./layout.hpp"
#include "./options.hpp"

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

namespace sifr {

/// Turns closed gradients into the rank's fp32 sums: every micro-batch the unit's gradients of all
/// ranks are added in rank order, and that sum is written to (first micro-batch of the step) or
/// added to the rank's slices.
///
/// Neighbouring closings share a bucket of at most `reduce_bucket` elements (0: none is shared),
/// one collective each; a larger unit is cut across its slices, so that every rank owns a part of
/// every piece. Buckets follow from the order of closings alone.
class Reducer {
 public:
  Reducer(const Layout& layout,
          const ZeroOptions& options,
          const MemoryPlan& plan,
          GradientMemory& memory,
          Communicator& communicator,
          Stream& stream);
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// The unit's gradient of this micro-batch is complete; `contributes` false: this rank has none,
  /// and stands for zeros.
  void close(int unit, bool contributes);
  /// Starts the reduction of what is pending.
  void flush();
  /// At a boundary with reduce_at "boundary": reduces the local accumulators of all units.
  void reduce_accumulators();
  /// At a boundary: sums of units that nothing was reduced of in this step are zero, instead of
  /// those of an earlier one.
  void clear_missing_sums();
  /// Waits for all reductions.
  void wait();
  /// Forgets what is pending: it is never reduced.
  void drop_pending();
  /// The sums are used up or dropped: the next ones are written, not added.
  void begin_step();
  /// This rank's fp32 sums of a segment: slice rank() of the whole.
  [[nodiscard]] View sums(int unit, int segment) const;

 private:
  struct Bucket {
    std::vector<ReducePart> parts = {};
    std::array<char, 96> names = {};  // "c, b, a": its units, as far as there is room
    std::size_t names_length = 0;
    Event done = {};
    void add_name(std::string_view name) noexcept;
    void empty() noexcept;
  };
  void add(int unit, bool contributes);
  void add_whole(int unit, bool contributes);
  void add_cut(int unit, bool contributes);
  [[nodiscard]] bool is_narrowed(const SegmentLayout& segment) const;
  [[nodiscard]] ReducePart part(int unit, int segment, bool contributes) const;
  void start(std::string_view name);
  void forget_pending() noexcept;
  void narrow(int unit);
  void accumulate_locally(int unit);
  [[nodiscard]] View accumulator(int unit, int segment) const;

  const Layout& layout_;
  const ZeroOptions& options_;
  GradientMemory& memory_;
  Communicator& communicator_;
  Stream& stream_;
  SharedBuffer sums_;
  SharedBuffer accumulators_;
  std::array<Bucket, 4> buckets_;  // in flight, and the one that fills
  std::size_t filling_ = 0;
  std::vector<int> pending_;  // units of the filling bucket
  std::int64_t pending_elements_ = 0;
  std::int64_t pending_bytes_ = 0;
  std::vector<bool> has_sums_;         // [unit], in this step
  std::vector<bool> has_accumulated_;  // [unit], in this step, with reduce_at "boundary"
};

}  // namespace sifr
