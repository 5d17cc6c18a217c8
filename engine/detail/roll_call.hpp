#pragma once

#include "comm/communicator.hpp"
#include "zero/agreed_order.hpp"
#include "zero/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sifr::detail {

/// What one rank says at the end of a micro-batch.
struct RollCallEntry {
  double weight = 1;
  double loss = 0;  // sum
  double lr = 0;    // that the trainer asks for, if has_lr
  std::int64_t events = 0;
  std::uint64_t order_hash = 0;
  bool has_lr = false;
  bool is_boundary = false;
};

/// When ranks meet, for messages; the same on every rank. `call` lives as long as the meeting.
struct Occasion {
  std::string_view call;
  std::int64_t step = 1;  // from 1, as is the micro-batch
  std::int64_t micro_batch = 1;
};

/// The small exchange that ends every micro-batch: ranks compare what they did, and learn each
/// other's losses and weights.
class RollCall {
 public:
  RollCall(const Layout& layout, Communicator& communicator);

  /// Collective. Every rank's entry, in rank order, valid until the next call; merges the ranks'
  /// uses into `order`. Throws CommError, on every rank, naming both units and ranks, if the ranks'
  /// sequences differ; UsageError if boundary or lr do.
  std::span<const RollCallEntry> meet(const Occasion& occasion,
                                      RollCallEntry own,
                                      AgreedOrder& order);

 private:
  void compare_orders(const Occasion& occasion, const AgreedOrder& order);
  [[nodiscard]] std::vector<std::vector<LeaseEvent>> gather(std::span<const LeaseEvent> mine);
  void compare_arguments() const;

  const Layout& layout_;
  Communicator& communicator_;
  std::vector<std::byte> mine_;
  std::vector<std::byte> all_;
  std::vector<RollCallEntry> entries_;
};

}  // namespace sifr::detail
