#include "engine/context.hpp"

#include "comm/group.hpp"
#include "comm/launch_environment.hpp"
#include "device/detail/check.hpp"
#include "device/exact_sum.hpp"
#include "device/usable_cores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <span>
#include <unistd.h>
#include <utility>

namespace sifr {
namespace {

// What one rank of a host gets of the cores that this process may use.
struct Placement {
  int threads = 1;
  double cores = 1;
  std::vector<int> cpus;
  std::string description;
};

}  // namespace

struct Context::State {
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> communicator;  // ends before its device
  Log log;
  Placement placement;
};

namespace {

// A launcher that gave this rank cores of its own (`sifr run --bind-cores`, numactl) has more
// itself.
bool has_own_cores(const std::vector<int>& cpus) {
  return usable_cores(getppid()).size() > cpus.size();
}

Placement place(int local_rank, int local_ranks, const ContextOptions& options, bool may_be_bound) {
  const std::vector<int> cpus = usable_cores();
  const bool is_bound = may_be_bound && local_ranks > 1 && has_own_cores(cpus);
  const int sharers = is_bound ? 1 : local_ranks;
  const int cores = std::max(1, static_cast<int>(cpus.size()));
  const int share = cores / sharers;
  Placement placement;
  placement.cores = static_cast<double>(cores) / sharers;
  placement.threads = options.threads > 0 ? options.threads : std::max(1, share);
  if (options.bind_cores && share > 0 && !cpus.empty()) {
    const auto first =
        cpus.begin() + static_cast<std::ptrdiff_t>(is_bound ? 0 : local_rank) * share;
    placement.cpus.assign(first, first + share);
  }
  const std::string source = options.threads > 0 ? "as asked for"
                             : is_bound
                                 ? fmt::format("{} core{} of its own", cores, cores == 1 ? "" : "s")
                                 : fmt::format("{} cores / {} ranks on this host", cores, sharers);
  placement.description = fmt::format(
      "{} kernel thread{} ({}), workers {}",
      placement.threads,
      placement.threads == 1 ? "" : "s",
      source,
      placement.cpus.empty()
          ? "not bound to cores"
          : fmt::format("on core{} {}", share == 1 ? "" : "s", fmt::join(placement.cpus, ",")));
  return placement;
}

std::unique_ptr<Device> make_device(const ContextOptions& options,
                                    const Placement& placement,
                                    int rank) {
  if (options.device == "host") {
    return make_host_device({options.limits, placement.threads, placement.cpus, rank, options.log});
  }
  SIFR_REQUIRE(UsageError,
               options.device.starts_with("cuda:"),
               "device is '{}': \"host\" and \"cuda:N\" are known",
               options.device);
  return make_cuda_device(std::atoi(options.device.c_str() + 5), options.limits);
}

GroupOptions group_options(const ContextOptions& options, const Placement& placement) {
  return {.has_own_core = placement.cores >= 1, .log = options.log};
}

}  // namespace

std::vector<Context> Context::threads(int ranks, const ContextOptions& options) {
  SIFR_REQUIRE(UsageError, ranks >= 1, "Context::threads: {} ranks, needs 1 or more", ranks);
  std::vector<std::unique_ptr<State>> states;
  std::vector<Device*> devices;
  for (int rank = 0; rank < ranks; ++rank) {
    const Placement placement = place(rank, ranks, options, false);
    states.push_back(std::make_unique<State>());
    states.back()->device = make_device(options, placement, rank);
    states.back()->log = options.log;
    states.back()->placement = placement;
    devices.push_back(states.back()->device.get());
  }
  auto communicators =
      make_thread_group(devices, group_options(options, states.front()->placement));
  std::vector<Context> contexts;
  for (std::size_t r = 0; r < states.size(); ++r) {
    states[r]->communicator = std::move(communicators[r]);
    contexts.push_back(Context(std::move(states[r])));
  }
  return contexts;
}

Context Context::from_environment(const ContextOptions& options) {
  const LaunchEnvironment launch = LaunchEnvironment::from_environment();
  const Placement placement = place(launch.local_rank, launch.local_size, options, true);
  auto state = std::make_unique<State>();
  state->device = make_device(options, placement, launch.rank);
  state->log = options.log;
  state->placement = placement;
  state->communicator =
      make_process_group(*state->device, launch, group_options(options, placement));
  return Context(std::move(state));
}

Context::Context(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;
Context::~Context() = default;

int Context::rank() const noexcept {
  return state_->communicator->rank();
}
int Context::size() const noexcept {
  return state_->communicator->size();
}

double Context::sum(double value) {
  std::vector<double> all(static_cast<std::size_t>(size()));
  state_->communicator->exchange(std::as_bytes(std::span(&value, 1)),
                                 std::as_writable_bytes(std::span(all)),
                                 {"Context::sum, which belongs between steps"});
  const auto is_finite = [](double one) { return std::isfinite(one); };
  if (!std::all_of(all.begin(), all.end(), is_finite))
    return std::accumulate(all.begin(), all.end(), 0.0);
  ExactSum sum;
  for (const double one : all)
    sum.add(one);
  return sum.value();
}

void Context::barrier() {
  state_->communicator->barrier({"Context::barrier, which belongs between steps"});
}
Communicator& Context::communicator() noexcept {
  return *state_->communicator;
}
Device& Context::device() noexcept {
  return *state_->device;
}
const Log& Context::log() const noexcept {
  return state_->log;
}

double Context::cores() const noexcept {
  return state_->placement.cores;
}

std::string Context::description() const {
  return fmt::format("rank {} of {}, {}", rank(), size(), state_->placement.description);
}

}  // namespace sifr
