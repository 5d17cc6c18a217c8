#include "device/detail/check.hpp"
#include "device/detail/log.hpp"
#include "engine/detail/engine_state.hpp"

#include <cmath>
#include <limits>

// EngineState: micro-batches and steps; update.cpp has what happens at a boundary.
namespace sifr::detail {

Loss EngineState::forward(Engine& engine, const Batch& batch) {
  return in_model("forward", [&] {
    last_loss_ = model_->forward(engine, batch);
    require_kept_gradients();
    return *last_loss_;
  });
}

void EngineState::backward(Engine& engine) {
  in_model("backward", [&] {
    model_->backward(engine, 1.0F);
    require_kept_gradients();
  });
}

// A model that gave gradients up and returned all the same.
void EngineState::require_kept_gradients() const {
  SIFR_REQUIRE(
      UsageError,
      !is_abandoned_,
      "gradients were given up: abandon() was called, or an exception left their scope and "
      "was caught");
}

bool EngineState::is_boundary() const noexcept {
  return micro_in_step_ + 1 >= batch_.accumulation;
}

double EngineState::lr() const {
  return schedule_(updates_);
}

void EngineState::require_ready_for(const char* call) {
  finish_evaluation();
  SIFR_REQUIRE(
      UsageError, !is_evaluating(), "{}: an evaluation is under way: end its scope first", call);
  SIFR_REQUIRE(UsageError,
               !is_exporting_,
               "{}: export_weights() is calling its sink: wait for its end",
               call);
  const int open = training_.open_unit();
  SIFR_REQUIRE(UsageError,
               open < 0,
               "{}: a lease on unit '{}' is open: end its scope first",
               call,
               open < 0 ? "" : layout_.unit(open).name);
}

StepReport EngineState::step(const StepOptions& options) {
  return guarded([&] {
    require_ready_for("step()");
    note_phase("step()");
    SIFR_REQUIRE(
        UsageError, layout_.trainable_count() > 0, "step(): the model has no trainable parameter");
    const bool is_boundary_step = options.boundary.value_or(is_boundary());
    meet(options, is_boundary_step);
    ++micro_batches_;
    ++micro_in_step_;
    StepReport report = make_report();
    report.lr = options.lr.value_or(lr());
    if (is_boundary_step) {
      reach_boundary(report);
    } else {
      training_.begin_micro_batch();
    }
    return report;
  });
}

Occasion EngineState::occasion(const char* call) const noexcept {
  return {call, steps_ + 1, micro_in_step_ + 1};
}

// Ends the micro-batch with the other ranks, and adds their losses and weights to the step's.
void EngineState::meet(const StepOptions& options, bool is_boundary_step) {
  const Loss loss = last_loss_.value_or(Loss(0.0, 1.0));
  RollCallEntry own;
  own.weight = options.weight.value_or(loss.weight);
  own.loss = options.loss.value_or(loss.sum);
  own.lr = options.lr.value_or(0.0);
  own.has_lr = options.lr.has_value();
  own.is_boundary = is_boundary_step;
  SIFR_REQUIRE(UsageError,
               std::isfinite(own.weight) && own.weight >= 0,
               "step(): weight is {}, and must be 0 or more",
               own.weight);
  SIFR_REQUIRE(UsageError,
               own.lr >= 0 && std::isfinite(static_cast<float>(own.lr)),
               "step(): lr is {}, and must be 0 or more and finite in fp32",
               own.lr);
  training_.end_micro_batch();
  notice_short_units();
  try {
    for (const RollCallEntry& entry : roll_call_.meet(occasion("step()"), own, training_.order())) {
      step_weight_.add(entry.weight);
      step_loss_.add(entry.loss);
      is_loss_finite_ = is_loss_finite_ && std::isfinite(entry.loss);
    }
  } catch (const UsageError&) {
    failure_ = std::current_exception();  // the ranks have parted
    throw;
  }
  last_loss_.reset();
}

StepReport EngineState::make_report() const {
  StepReport report;
  report.step = steps_;
  report.updates = updates_;
  report.skipped = skipped_;
  report.micro_batches = micro_batches_;
  report.weight = step_weight_.value();
  report.loss = is_loss_finite_ ? step_loss_.value() / report.weight
                                : std::numeric_limits<double>::quiet_NaN();
  return report;
}

void EngineState::notice_unused_units() {
  for (int u = 0; u < layout_.unit_count(); ++u) {
    const auto index = static_cast<std::size_t>(u);
    if (layout_.unit(u).gradient_bytes == 0 || is_noticed_unused_[index] ||
        training_.order().is_closed_by_some(u))
      continue;
    is_noticed_unused_[index] = true;
    if (context_.rank() != 0) continue;
    log(context_.log(),
        0,
        "engine",
        Level::kWarning,
        "no rank leased gradients of unit '{}' in step {}: its parameters are updated with zero "
        "gradients",
        layout_.unit(u).name,
        steps_ + 1);
  }
}

// Each rank for itself: others may have taken them all.
void EngineState::notice_short_units() {
  for (const int u : training_.short_units()) {
    if (is_noticed_short_[static_cast<std::size_t>(u)]) continue;
    is_noticed_short_[static_cast<std::size_t>(u)] = true;
    log(context_.log(),
        context_.rank(),
        "engine",
        Level::kWarning,
        "unit '{}' declares {} gradients leases, and fewer were taken in step {}: what is there is "
        "taken as its whole gradient",
        layout_.unit(u).name,
        layout_.unit(u).gradient_leases,
        steps_ + 1);
  }
}

void EngineState::end_step() {
  training_.order().adopt();
  begin_step();
}

void EngineState::begin_step() {
  training_.begin_micro_batch();
  reducer_.begin_step();
  step_loss_ = ExactSum();
  step_weight_ = ExactSum();
  is_loss_finite_ = true;
  micro_in_step_ = 0;
}

void EngineState::print(const StepReport& report) const {
  if (context_.rank() != 0 || !config_.steps_per_print || *config_.steps_per_print <= 0) return;
  if (report.step % *config_.steps_per_print != 0) return;
  log(context_.log(),
      0,
      "engine",
      Level::kInfo,
      "step {}: loss {:.6g}, lr {:.6g}, gradient norm {:.6g}, skipped {}",
      report.step,
      report.loss,
      report.lr,
      report.gradient_norm,
      report.skipped);
}

void EngineState::drop_gradients() {
  if (is_abandoned_ && context_.size() == 1) return start_over();
  guarded([&] {
    require_ready_for("drop_gradients()");
    training_.end_micro_batch();
    roll_call_.meet(occasion("drop_gradients()"), {}, training_.order());
    training_.order().forget();
    last_loss_.reset();
    begin_step();
  });
}

// A group of one after an exception: nothing is owed to other ranks.
void EngineState::start_over() {
  require_ready_for("drop_gradients()");
  training_.abandon_micro_batch();
  training_.order().forget();
  failure_ = nullptr;
  is_abandoned_ = false;
  last_loss_.reset();
  begin_step();
}

void EngineState::synchronize() {
  guarded([&] {
    stream_.synchronize();
    device_.compute().synchronize();
  });
}

}  // namespace sifr::detail
