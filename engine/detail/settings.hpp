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
/// One screen: effective config, batch sizes, the plan by purpose and its sum, the group.
[[nodiscard]] std::string start_screen(const Config& config,
                                       const BatchPlan& batch,
                                       const Layout& layout,
                                       const MemoryPlan& plan,
                                       const std::string& group);

}  // namespace sifr::detail
