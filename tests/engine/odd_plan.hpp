#pragma once

// The memory plan of the odd model, made from what a configuration says: the plan's own options are
// set by no user.
#include "tests/engine/odd_model.hpp"
#include "tests/support/run_ranks.hpp"
#include "zero/memory_plan.hpp"

#include <utility>
#include <vector>

namespace sifr::test {

inline MemoryPlan plan_of_odd_model(const Config& config, int ranks) {
  const DType compute = config.bf16.enabled ? DType::kBFloat16 : DType::kFloat32;
  std::vector<UnitSpec> units;
  for (const OddUnit& odd : OddModel::units()) {
    UnitSpec unit{.name = odd.name, .parameters = {}, .gradient_leases = odd.gradient_leases};
    for (const OddParameter& parameter : odd.parameters) {
      const DType dtype = parameter.keep_fp32 ? DType::kFloat32 : compute;
      unit.parameters.push_back({.name = parameter.name,
                                 .shape = {parameter.count},
                                 .count = parameter.count,
                                 .weights = dtype,
                                 .gradients = dtype,
                                 .trainable = parameter.trainable});
    }
    units.push_back(std::move(unit));
  }
  const ZeroConfig& zero = config.zero_optimization;
  const ZeroOptions options{.stage = static_cast<int>(zero.stage),
                            .reduce_at_boundary = config.sifr.reduce_at == ReduceAt::kBoundary,
                            .poison = config.sifr.debug,
                            .persistence = zero.stage3_param_persistence_threshold,
                            .max_live = zero.stage3_max_live_parameters};
  return make_memory_plan(Layout(units, ranks), options);
}

/// Throws unless a rank holds to the byte what the plan says, and never held more.
inline void check_account_is_plan(const MemoryTable& table, const MemoryPlan& plan) {
  SIFR_CHECK_RANK(table.total(Tier::kDevice).now == plan.total());
  SIFR_CHECK_RANK(table.total(Tier::kDevice).peak == plan.total());
  SIFR_CHECK_RANK(table.total(Tier::kHost).now == 0);
  for (std::size_t purpose = 0; purpose < kPurposeCount; ++purpose) {
    const auto of = static_cast<Purpose>(purpose);
    SIFR_CHECK_RANK(table.row(Tier::kDevice, of).now == plan.of(of));
  }
}

}  // namespace sifr::test
