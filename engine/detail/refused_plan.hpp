#pragma once

#include "zero/layout.hpp"
#include "zero/memory_plan.hpp"
#include "zero/options.hpp"

/// A plan for which there is no memory.
namespace sifr::detail {

/// A plan and what it was made from.
struct PlanSource {
  const Layout& layout;
  const ZeroOptions& options;
  const MemoryPlan& plan;
};

/// By how many bytes the plan exceeds what the device limit leaves; 0: it fits.
[[nodiscard]] std::int64_t missing_bytes(const MemoryPlan& plan, const MemoryTable& held);
/// Throws OutOfMemory with held and planned bytes as its table, and names a setting only if it
/// makes the plan smaller.
[[noreturn]] void throw_no_room(const PlanSource& source, const MemoryTable& held);

/// The machine of a group, and the bytes that it can still give to all of its ranks together.
struct Machine {
  int ranks = 1;
  std::int64_t available = 0;
};
/// Throws OutOfMemory, as above, if the ranks' plans, each like this one, exceed that: taking it
/// would have the system kill ranks.
void require_available(const PlanSource& source, const MemoryTable& held, const Machine& machine);

}  // namespace sifr::detail
