#include "engine/engine.hpp"

#include "engine/detail/engine_state.hpp"

#include <algorithm>
#include <utility>

namespace sifr {

namespace {

constexpr double kLongestWait = 1e9;  // seconds: more than anybody means by a number beyond it

void tell_group(Context& context, const char* text) {
  if (context.size() > 1) context.communicator().abort(std::string("Engine::initialize: ") + text);
}

// The group learns of what keeps this rank from starting: the others wait in their first
// collective.
std::unique_ptr<detail::EngineState> start(Model* model,
                                           const Engine::Declare& declare,
                                           const Setup& setup,
                                           const std::function<Config()>& load) {
  std::unique_ptr<Context> own;
  if (setup.context == nullptr) own = std::make_unique<Context>(Context::from_environment());
  Context& context = setup.context != nullptr ? *setup.context : *own;
  try {
    const Config config = load();
    context.communicator().set_timeout(std::chrono::milliseconds(
        static_cast<std::int64_t>(std::min(config.sifr.comm_timeout, kLongestWait) * 1000)));
    auto state = std::make_unique<detail::EngineState>(model, declare, config, context);
    state->keep(std::move(own));
    return state;
  } catch (const CommError&) {
    throw;
  } catch (const detail::AgreedFailure& failure) {
    std::rethrow_exception(failure.error);
  } catch (const std::exception& error) {
    tell_group(context, error.what());
    throw;
  } catch (...) {
    tell_group(context, "an exception that is no std::exception");
    throw;
  }
}

}  // namespace

Engine Engine::initialize(Model& model, const std::filesystem::path& config, const Setup& setup) {
  return Engine(start(&model, {}, setup, [&] { return load_config(config, setup.hints); }));
}

Engine Engine::initialize(const Declare& declare,
                          const std::filesystem::path& config,
                          const Setup& setup) {
  return Engine(start(nullptr, declare, setup, [&] { return load_config(config, setup.hints); }));
}

Engine Engine::initialize(Model& model, const Config& config, const Setup& setup) {
  return Engine(start(&model, {}, setup, [&] { return config; }));
}

Engine Engine::initialize(const Declare& declare, const Config& config, const Setup& setup) {
  return Engine(start(nullptr, declare, setup, [&] { return config; }));
}

Engine::Engine(std::unique_ptr<detail::EngineState> state) noexcept : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Weights Engine::weights(const Unit& unit) {
  return state_->weights(unit);
}
Gradients Engine::gradients(const Unit& unit) {
  return state_->gradients(unit);
}
float Engine::loss_gradient() const {
  return 1.0F;
}
Loss Engine::forward(const Batch& batch) {
  return state_->forward(*this, batch);
}
void Engine::backward() {
  state_->backward(*this);
}
StepReport Engine::step(const StepOptions& options) {
  return state_->step(options);
}
void Engine::drop_gradients() {
  state_->drop_gradients();
}
void Engine::synchronize() {
  state_->synchronize();
}
Evaluation Engine::evaluate(Residency residency) {
  return state_->evaluate(residency);
}
bool Engine::is_evaluating() const noexcept {
  return state_->is_evaluating();
}
void Engine::export_weights(const Sink& sink, ExportAs what, int root) {
  state_->export_weights(sink, what, root);
}
std::string Engine::weights_hash() {
  return state_->weights_hash();
}
int Engine::rank() const noexcept {
  return state_->context().rank();
}
int Engine::size() const noexcept {
  return state_->context().size();
}
Context& Engine::context() noexcept {
  return state_->context();
}
BatchPlan Engine::batch() const noexcept {
  return state_->batch();
}
bool Engine::is_boundary() const noexcept {
  return state_->is_boundary();
}
double Engine::lr() const {
  return state_->lr();
}
MemoryTable Engine::memory() const {
  return state_->context().device().account().table();
}
Buffer Engine::allocate(std::int64_t bytes, Purpose purpose) {
  state_->check_usable();
  return state_->context().device().allocate(bytes, purpose);
}
Charge Engine::charge(std::int64_t bytes, Purpose purpose) {
  state_->check_usable();
  return state_->context().device().account().charge(bytes, purpose);
}

Evaluation::Evaluation(Evaluation&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)) {}

Evaluation::~Evaluation() {
  if (engine_ != nullptr) engine_->end_evaluation();
}

}  // namespace sifr
