#include "engine/lease.hpp"

#include "device/detail/check.hpp"
#include "engine/detail/engine_state.hpp"

#include <exception>
#include <utility>

namespace sifr {

namespace {

// Where a lease was asked for another dtype than there is.
const char* cure(DType dtype) {
  return dtype == DType::kBFloat16
             ? "ask for data<sifr::bfloat16>, or leave bf16.enabled out of the file"
             : "ask for data<float>, or set bf16.enabled, and keep the parameter out of fp32";
}

}  // namespace

Lease::Lease(Lease&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)), unit_(std::move(other.unit_)) {}

const ParameterLayout& Lease::place(int parameter) const {
  if (engine_ == nullptr) throw UsageError("a lease was used after it had been moved from");
  return engine_->parameter(unit_, parameter);
}

std::int64_t Lease::count(int parameter) const {
  return place(parameter).spec.count;
}

DType Lease::dtype(int parameter) const {
  return place(parameter).spec.weights;
}

Weights::~Weights() {
  if (engine_ != nullptr) engine_->release_weights(unit_);
}

const void* Weights::checked(int parameter, DType wanted) const {
  const ParameterSpec& spec = place(parameter).spec;
  SIFR_REQUIRE(UsageError,
               spec.weights == wanted,
               "the weights of '{}' are {}, and were asked for as {}: {}",
               spec.name,
               name_of(spec.weights),
               name_of(wanted),
               cure(spec.weights));
  return engine_->weight_data(unit_, parameter);
}

Gradients::Gradients(detail::EngineState* engine, const Unit& unit, bool is_first) noexcept
    : Lease(engine, unit), is_first_(is_first), exceptions_(std::uncaught_exceptions()) {}

Gradients::~Gradients() {
  if (engine_ == nullptr) return;
  if (std::uncaught_exceptions() > exceptions_) {
    abandon();
  } else {
    engine_->close_gradients(unit_);
  }
}

void Gradients::abandon() noexcept {
  if (engine_ != nullptr) std::exchange(engine_, nullptr)->abandon_gradients(unit_);
}

bool Gradients::has(int parameter) const {
  return place(parameter).spec.trainable;
}

DType Gradients::gradient_dtype(int parameter) const {
  return place(parameter).spec.gradients;
}

void* Gradients::checked(int parameter, DType wanted) const {
  const ParameterSpec& spec = place(parameter).spec;
  SIFR_REQUIRE(
      UsageError, spec.trainable, "'{}' is frozen and has no gradient: ask has() first", spec.name);
  SIFR_REQUIRE(UsageError,
               spec.gradients == wanted,
               "the gradient of '{}' is {}, and was asked for as {}: {}",
               spec.name,
               name_of(spec.gradients),
               name_of(wanted),
               cure(spec.gradients));
  return engine_->gradient_data(unit_, parameter);
}

}  // namespace sifr
