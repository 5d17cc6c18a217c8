#pragma once

#include "../comm/communicator.hpp"
#include "../device/kernels.hpp"
#include "./layout.hpp"
#include "./memory_plan.hpp"
#include "./options.hpp"
#include "./reducer.hpp"
#include "./weight_store.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sifr {

/// Adam (Kingma and Ba, 2014) or AdamW (Loshchilov and Hutter, 2017).
struct AdamOptions {
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = true;  // AdamW; false: L2, added to the gradient
  bool bias_correction = true;
};

/// Of one update.
struct UpdateScalars {
  double lr = 0;
  std::int64_t update = 1;  // k, from 1
  float factor = 1;         // turns a sum into the averaged, clipped gradient
};

/// The fp32 masters and moments of the elements that this rank updates, and the loop that updates
/// them: its own slices at stages 1 to 3; at stage 0 everything, from sums that are gathered unit
/// by unit.
class ShardedOptimizer {
 public:
  ShardedOptimizer(const Layout& layout,
                   const ZeroOptions& options,
                   const MemoryPlan& plan,
                   const AdamOptions& adam,
                   const WeightStore& store,
                   const Reducer& reducer,
                   Communicator& communicator,
                   Stream& stream);

  /// Elements [first, first + count) of the segment's whole that this rank updates.
  struct Range {
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  [[nodiscard]] Range owned(int unit, int segment) const;
  /// The fp32 masters of that range; in fp32 the weights themselves.
  [[nodiscard]] View masters(int unit, int segment) const;
  /// This rank's slice of the masters, at every stage.
  [[nodiscard]] View master_slice(int unit, int segment) const;

  /// Σ over this rank's slices of sum², exactly; and the first parameter (index over the model)
  /// with a sum that is not finite, or -1.
  struct Norm {
    ExactSum squares = {};
    std::int64_t non_finite = -1;
  };
  [[nodiscard]] Norm squared_norm();

  /// Elements that are updated at a time, at most.
  [[nodiscard]] std::int64_t longest_piece() const;

  /// Applies one update to masters, moments and this rank's weights. Collective at stage 0.
  void update(const UpdateScalars& scalars);

 private:
  struct Group {  // of parameters that share the update's scalars
    bool decay = true;
    float lr_scale = 1;
    friend bool operator==(const Group&, const Group&) = default;
  };
  struct State {  // of a segment: elements into the moments and the masters
    std::int64_t first = -1;
    std::int64_t master_first = -1;
  };
  // Pieces or views that a kernel is told of at a time: enough for its threads to share, few to
  // keep.
  static constexpr std::size_t kBatch = 512;
  void place_states();
  void find_groups();
  void add_squares(int unit, int segment, Norm& norm);
  void add_squares_of_views(Norm& norm);
  [[nodiscard]] kernels::AdamScalars scalars_of(const Group& group,
                                                const UpdateScalars& scalars) const;
  void update_replicated();
  Event gather_sums(int trainable_unit);
  void add_pieces(int unit);
  void update_pieces();
  [[nodiscard]] kernels::AdamRun run_of(int unit, int segment) const;
  template <class F>
  void for_each_piece(int unit, int segment, F&& f) const;
  [[nodiscard]] View gathered_sum(int unit, int segment) const;
  [[nodiscard]] View sum_of(int unit, int segment) const;
  [[nodiscard]] const State& state(int unit, int segment) const;

  const Layout& layout_;
  const ZeroOptions& options_;
  const AdamOptions adam_;
  const WeightStore& store_;
  const Reducer& reducer_;
  Communicator& communicator_;
  Stream& stream_;
  Buffer masters_;
  Buffer m_;
  Buffer v_;
  Buffer gathered_;                         // stage 0: two units' sums, by turns
  std::vector<std::vector<State>> states_;  // [unit][segment]
  std::vector<Group> groups_;
  std::vector<kernels::AdamScalars> scalars_;  // [group], of the update under way
  std::vector<std::size_t> groups_of_;         // [parameter over the model]
  std::vector<kernels::AdamPiece> pieces_;     // to be updated next
  std::vector<ConstView> sum_views_;           // to be squared next, grains at most
  std::vector<int> sum_parameters_;            // [sum view]: index over the model
  std::vector<int> trainable_units_;
  std::vector<int> turns_;                        // [unit]: which half of `gathered_`
  std::array<std::vector<GatherPart>, 2> parts_;  // of the gathers in flight
};

}  // namespace sifr
