#include "engine/detail/refused_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace sifr::detail {

namespace {

MemoryTable with_plan_refused(MemoryTable table, const MemoryPlan& plan) {
  for (std::size_t p = 0; p < kPurposeCount; ++p) {
    const auto purpose = static_cast<Purpose>(p);
    if (plan.of(purpose) > 0) table = table.with_refused(Tier::kDevice, purpose, plan.of(purpose));
  }
  return table;
}

template <int kStage>
void set_stage(ZeroOptions& options) {
  options.stage = kStage;
  if (kStage >= 2) options.reduce_at_boundary = false;  // these stages refuse it
}

void shrink_window(ZeroOptions& options) {
  options.max_live = 0;
}

void drop_window(ZeroOptions& options) {
  options.max_live = 0;
  options.persistence = 0;
}

struct Change {
  const char* advice;
  void (*make)(ZeroOptions&);
};

// Those that cost the least speed come first.
constexpr Change kChanges[] = {
    {R"(leave out "sifr": {"debug": true})", [](ZeroOptions& options) { options.poison = false; }},
    {"set zero_optimization.stage to 1", set_stage<1>},
    {"set zero_optimization.stage to 2", set_stage<2>},
    {R"(leave out "sifr": {"reduce_at": "boundary"})",
     [](ZeroOptions& options) { options.reduce_at_boundary = false; }},
    {"lower zero_optimization.stage3_max_live_parameters", shrink_window},
    {"lower zero_optimization.stage3_max_live_parameters and stage3_param_persistence_threshold",
     drop_window},
    {"set zero_optimization.stage to 3", set_stage<3>},
    {"set zero_optimization.stage to 3 and lower stage3_max_live_parameters",
     [](ZeroOptions& options) {
       set_stage<3>(options);
       shrink_window(options);
     }},
    {"set zero_optimization.stage to 3 and lower stage3_max_live_parameters and "
     "stage3_param_persistence_threshold",
     [](ZeroOptions& options) {
       set_stage<3>(options);
       drop_window(options);
     }},
};

// The first change that fits into `room` bytes, else the one that saves most; empty: none helps.
std::string smaller_setting(const PlanSource& source, std::int64_t room) {
  const Change* best = nullptr;
  std::int64_t least = source.plan.total();
  for (const Change& change : kChanges) {
    ZeroOptions options = source.options;
    change.make(options);
    const std::int64_t total = make_memory_plan(source.layout, options).total();
    if (total >= least) continue;
    best = &change;
    least = total;
    if (total <= room) break;
  }
  return best == nullptr ? "" : fmt::format("{} (down to {} in all), ", best->advice, mib(least));
}

}  // namespace

std::int64_t missing_bytes(const MemoryPlan& plan, const MemoryTable& held) {
  if (!held.limits.device) return 0;
  const std::int64_t free = *held.limits.device - held.total(Tier::kDevice).now;
  return std::max<std::int64_t>(0, plan.total() - free);
}

void throw_no_room(const PlanSource& source, const MemoryTable& held) {
  const std::int64_t needed = source.plan.total();
  const std::int64_t free = needed - missing_bytes(source.plan, held);
  throw OutOfMemory(
      fmt::format("the plan needs {} on this rank's device, and {} of the limit of {} "
                  "are free: {}use more ranks, or raise the limit",
                  mib(needed),
                  mib(free),
                  mib(held.limits.device.value_or(0)),
                  smaller_setting(source, free)),
      with_plan_refused(held, source.plan));
}

void require_available(const PlanSource& source, const MemoryTable& held, const Machine& machine) {
  const std::int64_t share = machine.available / machine.ranks;
  if (source.plan.total() <= share) return;
  throw OutOfMemory(
      fmt::format("the plan needs {} on this rank, and the machine has {} left{}: {}train a "
                  "smaller model, or end what else runs here",
                  mib(source.plan.total()),
                  mib(share),
                  machine.ranks == 1 ? "" : fmt::format(" for each of {} ranks", machine.ranks),
                  smaller_setting(source, share)),
      with_plan_refused(held, source.plan));
}

}  // namespace sifr::detail
