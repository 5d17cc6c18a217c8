#pragma once

#include "config_schema/batch_plan.hpp"
#include "config_schema/config.hpp"
#include "engine/model.hpp"
#include "zero/layout.hpp"
#include "zero/memory_plan.hpp"
#include "zero/options.hpp"
#include "zero/sharded_optimizer.hpp"

#include <string>
#include <vector>

/// From what a user may write to what the rooms below take.
namespace sifr::detail {

[[nodiscard]] DType compute_dtype(const Config& config);
[[nodiscard]] ZeroOptions make_zero_options(const Config& config);
[[nodiscard]] AdamOptions make_adam_options(const Config& config);
/// Checks names, shapes and counts. Throws UsageError.
[[nodiscard]] std::vector<UnitSpec> make_unit_specs(const std::vector<Units::Declared>& declared,
                                                    DType compute_dtype);
/// By how many bytes the plan exceeds what the device limit leaves; 0: it fits.
[[nodiscard]] std::int64_t missing_bytes(const MemoryPlan& plan, const MemoryTable& held);
/// Throws OutOfMemory with held and planned bytes as its table.
[[noreturn]] void throw_no_room(const MemoryPlan& plan, const MemoryTable& held, int stage);

/// The machine of a group, and the bytes that it can still give to all of its ranks together.
struct Machine {
  int ranks = 1;
  std::int64_t available = 0;
};
/// Throws OutOfMemory, with the same table, if the ranks' plans, each like this one, exceed that:
/// taking it would have the system kill ranks.
void require_available(const MemoryPlan& plan,
                       const MemoryTable& held,
                       const Machine& machine,
                       int stage);

/// One screen: effective config, batch sizes, the plan by purpose and its sum, the group.
[[nodiscard]] std::string start_screen(const Config& config,
                                       const BatchPlan& batch,
                                       const Layout& layout,
                                       const MemoryPlan& plan,
                                       const std::string& group);

}  // namespace sifr::detail
