#pragma once

#include "../comm/communicator.hpp"
#include "./layout.hpp"
#include "./options.hpp"

#include <cstddef>
#include <vector>

namespace sifr {

/// Where a rank's weights rest: all wholes (stages 0 to 2), or its own slices only (stage 3). Peers
/// read the memory in place, so it changes only between collectives.
class WeightStore {
 public:
  WeightStore(const Layout& layout, const ZeroOptions& options, Communicator& communicator);

  [[nodiscard]] bool is_whole() const noexcept { return is_whole_; }
  /// Stages 0 to 2: the unit's whole weights.
  [[nodiscard]] std::byte* whole(int unit) const;
  /// Stages 0 to 2: one segment of them.
  [[nodiscard]] View whole_segment(int unit, int segment) const;
  /// This rank's slice of a segment, at every stage.
  [[nodiscard]] View slice(int unit, int segment) const;

  /// Appends to `parts` what gathers the unit's slices into `whole`, one for each segment.
  void add_parts(int unit, std::byte* whole, std::vector<GatherPart>& parts) const;

  enum class Which : std::uint8_t { kTrainable, kAll };
  /// Collective, blocking; stages 0 to 2: every rank's slices become everybody's wholes.
  void gather_wholes(Which which, Stream& stream);

 private:
  const Layout& layout_;
  const ZeroOptions& options_;
  Communicator& communicator_;
  bool is_whole_;
  SharedBuffer memory_;
  std::vector<GatherPart> parts_;  // of the collective in flight
};

}  // namespace sifr
