#include "engine/detail/engine_state.hpp"

#include "device/detail/check.hpp"
#include "device/detail/log.hpp"
#include "device/kernels.hpp"
#include "engine/detail/first_difference.hpp"
#include "engine/detail/refused_plan.hpp"
#include "engine/detail/settings.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sifr::detail {

EngineState::EngineState(Model* model,
                         const Engine::Declare& declare_units,
                         const Config& config,
                         Context& context)
    : model_(model),
      context_(context),
      communicator_(context.communicator()),
      device_(context.device()),
      config_(config),
      batch_(resolve_batch(config, context.size())),
      options_(make_zero_options(config)),
      schedule_(make_lr(config)),
      declared_(declare(model, declare_units)),
      layout_(make_unit_specs(declared_, compute_dtype(config)), context.size()),
      plan_(agree_on_plan()),
      stream_(options_.overlap ? communicator_.stream() : device_.compute()),
      store_(layout_, options_, communicator_),
      window_(options_.stage < 3 && !options_.poison
                  ? nullptr
                  : std::make_unique<GatherWindow>(
                        layout_, options_, store_, communicator_, stream_, plan_.window)),
      gradients_(layout_, options_, plan_, communicator_),
      reducer_(layout_, options_, plan_, gradients_, communicator_, stream_),
      optimizer_(layout_,
                 options_,
                 plan_,
                 make_adam_options(config),
                 store_,
                 reducer_,
                 communicator_,
                 stream_),
      training_(layout_, {&store_, window_.get(), &gradients_, &reducer_}, communicator_, true),
      evaluating_(layout_, {&store_, window_.get(), nullptr, nullptr}, communicator_, false),
      roll_call_(layout_, communicator_),
      leased_weights_(index(layout_.unit_count())),
      leased_gradients_(index(layout_.unit_count())),
      is_noticed_unused_(index(layout_.unit_count())),
      is_noticed_short_(index(layout_.unit_count())) {
  fill_weights();
  publish_weights(WeightStore::Which::kAll);
  communicator_.barrier({"start"});
}

EngineState::~EngineState() {
  try {
    stream_.synchronize();
  } catch (const std::exception& error) {
    log(context_.log(),
        context_.rank(),
        "engine",
        Level::kDebug,
        "work dropped at the end: {}",
        error.what());
  }
}

Schedule EngineState::make_lr(const Config& config) {
  const double lr = config.optimizer ? config.optimizer->lr : OptimizerConfig().lr;
  if (config.scheduler) return make_schedule(*config.scheduler, lr);
  return [lr](std::int64_t) { return lr; };
}

std::vector<Units::Declared> EngineState::declare(Model* model,
                                                  const Engine::Declare& declare_units) {
  Units units(compute_dtype(config_), static_cast<std::uint64_t>(config_.sifr.seed));
  unit_names_ = units.names_;
  if (model != nullptr) {
    model->declare(units);
  } else {
    declare_units(units);
  }
  return units.declared();
}

// What a rank brings to the start.
struct EngineState::Offer {
  std::uint64_t layout = 0;  // fingerprints
  std::uint64_t config = 0;
  std::int64_t missing = 0;    // bytes beyond the limit of its device
  std::int64_t available = 0;  // bytes that its machine has left
};

// Every rank must have declared the same model under the same options, and have room for it, before
// memory is taken together.
MemoryPlan EngineState::agree_on_plan() {
  const MemoryPlan plan = make_memory_plan(layout_, options_);
  const Offer mine{layout_.fingerprint(),
                   std::hash<std::string>()(to_json(config_)),
                   missing_bytes(plan, device_.account().table()),
                   available_bytes()};
  std::vector<Offer> all(index(communicator_.size()));
  communicator_.exchange(
      std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), {"initialize"});
  try {
    compare(all, plan);
  } catch (const std::exception&) {
    throw AgreedFailure{std::current_exception()};
  }
  if (context_.rank() == 0) {
    log(context_.log(),
        0,
        "engine",
        Level::kInfo,
        "{}",
        start_screen(config_, batch_, layout_, plan, context_.description()));
    for (const std::string& notice : config_.notices)
      log(context_.log(), 0, "engine", Level::kWarning, "{}", notice);
  }
  return plan;
}

void EngineState::compare(const std::vector<Offer>& offers, const MemoryPlan& plan) const {
  for (std::size_t r = 1; r < offers.size(); ++r) {
    SIFR_REQUIRE(UsageError,
                 offers[r].config == offers[0].config,
                 "ranks 0 and {} have different configurations{}",
                 r,
                 first_difference(facts_of(config_), communicator_, static_cast<int>(r)));
    SIFR_REQUIRE(UsageError,
                 offers[r].layout == offers[0].layout,
                 "ranks 0 and {} declare different models{}",
                 r,
                 first_difference(facts_of(layout_), communicator_, static_cast<int>(r)));
  }
  if (!config_.optimizer && layout_.trainable_count() > 0) {
    throw config_error(
        config_, "/optimizer", "is missing: add the block, or give the hint lr for AdamW");
  }
  const MemoryTable held = device_.account().table();
  if (offers[index(context_.rank())].missing > 0) throw_no_room({layout_, options_, plan}, held);
  for (std::size_t r = 0; r < offers.size(); ++r) {
    if (offers[r].missing == 0) continue;
    throw OutOfMemory(
        fmt::format(
            "the plan needs {} more than rank {} has: see its error", mib(offers[r].missing), r),
        held);
  }
  std::int64_t available = offers[0].available;
  for (const Offer& offer : offers)
    available = std::min(available, offer.available);
  require_available({layout_, options_, plan}, held, {context_.size(), available});
}

// The shards have changed: wholes and gathered units follow.
void EngineState::publish_weights(WeightStore::Which which) {
  const bool has_changed = options_.stage > 0 || which == WeightStore::Which::kAll;
  if (store_.is_whole() && has_changed) store_.gather_wholes(which, stream_);
  if (window_) window_->refresh();
}

void EngineState::check_usable() const {
  if (failure_) std::rethrow_exception(failure_);
}

int EngineState::checked_index(const Unit& unit, const char* call) const {
  SIFR_REQUIRE(UsageError, unit.names_ != nullptr, "{}: the unit was not made by Units::add", call);
  SIFR_REQUIRE(
      UsageError,
      unit.names_ == unit_names_,
      "{}: unit '{}' was declared for another engine than this one, whose first unit is '{}'. Give "
      "each engine a model of its own: a second Engine::initialize declares a model's units anew",
      call,
      unit.names_ ? (*unit.names_)[index(unit.index())] : std::string(),
      layout_.unit(0).name);
  return unit.index();
}

// Ranks that part at stage 3 may have held different units, and so dropped different ones.
std::exception_ptr EngineState::explained(const CommError& error) const {
  constexpr const char* kHint =
      "; if the ranks' orders agree: the gather window cannot hold all units, or debug mode is on, "
      "and then leases that overlap must end in the same places on every rank, also where a rank "
      "leaves units out: end them earlier, or raise zero_optimization.stage3_max_live_parameters";
  const bool has_parted = dynamic_cast<const CallsDiffer*>(&error) != nullptr;
  const bool depends_on_ends = training_.depends_on_ends() || evaluating_.depends_on_ends();
  if (!window_ || window_->holds_all() || !depends_on_ends || !has_parted)
    return std::current_exception();
  return std::make_exception_ptr(CommError(error.what() + std::string(kHint), error.rank()));
}

// A group learns of any exception of the model; a group of one only has gradients to give up.
void EngineState::leave_model(const char* call, const char* text) {
  if (is_abandoned_) {
    fail_group(fmt::format("exception in {}: {} (the gradients of unit '{}' were given up)",
                           call,
                           text,
                           layout_.unit(abandoned_unit_).name));
  } else if (context_.size() > 1) {
    fail_group(fmt::format("exception in {}: {}", call, text));
  }
}

void EngineState::fail_group(const std::string& text) noexcept {
  if (context_.size() > 1) communicator_.abort(text);
  if (!failure_)
    failure_ = std::make_exception_ptr(
        CommError(fmt::format("rank {} failed: {}", context_.rank(), text), context_.rank()));
}

}  // namespace sifr::detail
