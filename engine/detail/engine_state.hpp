#pragma once

#include "device/exact_sum.hpp"
#include "engine/detail/roll_call.hpp"
#include "engine/engine.hpp"
#include "engine/lr_schedule.hpp"
#include "zero/coordinator.hpp"
#include "zero/gather_window.hpp"
#include "zero/gradient_memory.hpp"
#include "zero/layout.hpp"
#include "zero/memory_plan.hpp"
#include "zero/reducer.hpp"
#include "zero/sharded_optimizer.hpp"
#include "zero/weight_store.hpp"

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sifr::detail {

[[nodiscard]] constexpr std::size_t index(int value) noexcept {
  return static_cast<std::size_t>(value);
}

/// What keeps every rank from starting or from making a call, found by all of them: the group is
/// not aborted for it.
struct AgreedFailure {
  std::exception_ptr error;
};

/// Everything behind an Engine. Lives at one address, which units and leases refer to.
class EngineState {
 public:
  /// `model` is null where only a declare function was given. `context` outlives the object, unless
  /// it keeps it.
  EngineState(Model* model, const Engine::Declare& declare, const Config& config, Context& context);
  ~EngineState();
  /// The context that the engine made for itself; null where the trainer brings one.
  void keep(std::unique_ptr<Context> own_context) noexcept {
    own_context_ = std::move(own_context);
  }
  EngineState(const EngineState&) = delete;
  EngineState& operator=(const EngineState&) = delete;

  // Leases.
  [[nodiscard]] Weights weights(const Unit& unit);
  [[nodiscard]] Gradients gradients(const Unit& unit);
  void release_weights(const Unit& unit) noexcept;
  void close_gradients(const Unit& unit) noexcept;
  void abandon_gradients(const Unit& unit) noexcept;
  [[nodiscard]] const ParameterLayout& parameter(const Unit& unit, int parameter) const;
  [[nodiscard]] const std::byte* weight_data(const Unit& unit, int parameter) const;
  [[nodiscard]] std::byte* gradient_data(const Unit& unit, int parameter) const;

  // The step.
  Loss forward(Engine& engine, const Batch& batch);
  void backward(Engine& engine);
  StepReport step(const StepOptions& options);
  void drop_gradients();
  void synchronize();
  [[nodiscard]] bool is_boundary() const noexcept;
  [[nodiscard]] double lr() const;

  // Evaluation.
  [[nodiscard]] Evaluation evaluate(Residency residency);
  void end_evaluation() noexcept;
  [[nodiscard]] bool is_evaluating() const noexcept {
    return evaluation_ == Evaluating::kStreamed || evaluation_ == Evaluating::kWhole;
  }

  void export_weights(const Sink& sink, ExportAs what, int root);
  [[nodiscard]] std::string weights_hash();

  [[nodiscard]] Context& context() noexcept { return context_; }
  [[nodiscard]] BatchPlan batch() const noexcept { return batch_; }
  /// Throws what failed the engine.
  void check_usable() const;

 private:
  enum class Evaluating : std::uint8_t { kNot, kStreamed, kWhole, kStreamedEnds, kWholeEnds };

  // Start.
  [[nodiscard]] std::vector<Units::Declared> declare(Model* model, const Engine::Declare& declare);
  [[nodiscard]] static Schedule make_lr(const Config& config);
  [[nodiscard]] MemoryPlan agree_on_plan();
  struct Offer;
  void compare(const std::vector<Offer>& offers, const MemoryPlan& plan) const;
  void fill_weights();
  void fill_segment(int unit, int segment);
  void require_repeatable(int unit,
                          const Stretch& stretch,
                          std::int64_t first,
                          std::span<const float> values) const;
  void publish_weights(WeightStore::Which which);

  // Leases.
  [[nodiscard]] int checked_index(const Unit& unit, const char* call) const;
  [[nodiscard]] Coordinator& coordinator() noexcept {
    return is_evaluating() ? evaluating_ : training_;
  }
  void finish_evaluation();
  void gather_everything();
  void try_together(const char* call, std::int64_t bytes, const std::function<void()>& take);
  void note_phase(const char* what, std::string_view name = {});
  [[nodiscard]] Occasion occasion(const char* call) const noexcept;

  // The step.
  void require_ready_for(const char* call);
  void meet(const StepOptions& options, bool is_boundary);
  void reach_boundary(StepReport& report);
  [[nodiscard]] ShardedOptimizer::Norm agree_on_norm();
  void refuse(StepReport& report, std::int64_t parameter);
  void notice_unused_units();
  void notice_short_units();
  void end_step();
  void begin_step();
  void start_over();
  [[nodiscard]] StepReport make_report() const;
  void print(const StepReport& report) const;
  [[nodiscard]] const std::string& parameter_name(std::int64_t index) const;
  [[nodiscard]] bool skips_non_finite() const;

  // Failure.
  template <class F>
  auto guarded(F&& f) {
    check_usable();
    try {
      return f();
    } catch (const CommError& error) {
      failure_ = explained(error);
      std::rethrow_exception(failure_);
    } catch (const DeviceError&) {
      failure_ = std::current_exception();
      throw;
    } catch (const AgreedFailure& agreed) {
      std::rethrow_exception(agreed.error);
    } catch (const OutOfMemory& error) {
      if (context_.size() > 1) fail_group(error.message());  // others may have had room, and wait
      throw;
    }
  }
  /// Calls the model; an exception that leaves it in a group, or with gradients open, fails the
  /// engine and the group.
  template <class F>
  auto in_model(const char* call, F&& f) {
    return guarded([&] {
      if (model_ == nullptr)
        throw UsageError(
            "forward() and backward() need a Model; this engine has only its declare function");
      is_in_model_ = true;
      try {
        auto leave = [this](void*) { is_in_model_ = false; };
        const std::unique_ptr<EngineState, decltype(leave)> scope(this, leave);
        return f();
      } catch (const std::exception& error) {
        leave_model(call, error.what());
        throw;
      } catch (...) {
        leave_model(call, "one that is no std::exception");
        throw;
      }
    });
  }
  [[nodiscard]] std::exception_ptr explained(const CommError& error) const;
  void leave_model(const char* call, const char* text);
  void require_kept_gradients() const;
  void fail_group(const std::string& text) noexcept;

  // Export.
  struct Export;
  void export_parameter(const ParameterLayout& parameter, int unit, Export& out);
  [[nodiscard]] SharedBuffer allocate_staging();
  void tell_of_sink(const std::exception_ptr& thrown, int root);
  [[nodiscard]] View exported_slice(int unit, int segment, ExportAs what) const;

  Model* model_;
  std::unique_ptr<Context> own_context_;
  Context& context_;
  Communicator& communicator_;
  Device& device_;
  const Config config_;
  const BatchPlan batch_;
  const ZeroOptions options_;
  Schedule schedule_;
  std::shared_ptr<const std::vector<std::string>> unit_names_;
  const std::vector<Units::Declared> declared_;
  const Layout layout_;
  const MemoryPlan plan_;
  Stream& stream_;
  WeightStore store_;
  std::unique_ptr<GatherWindow> window_;
  GradientMemory gradients_;
  Reducer reducer_;
  ShardedOptimizer optimizer_;
  Coordinator training_;
  Coordinator evaluating_;
  RollCall roll_call_;
  std::vector<ShardedOptimizer::Norm> norms_;  // [rank], of the exchange

  std::vector<const std::byte*> leased_weights_;  // [unit]
  std::vector<std::byte*> leased_gradients_;      // [unit]
  Evaluating evaluation_ = Evaluating::kNot;
  int whole_leases_ = 0;  // open in a kWhole evaluation
  Buffer everything_;     // stage 3, kWhole: all wholes
  std::exception_ptr failure_;
  bool is_abandoned_ = false;  // gradients were given up
  int abandoned_unit_ = -1;    // first of them
  bool is_exporting_ = false;  // a sink may be running
  bool is_in_model_ = false;   // in its forward or backward, which report their own exception
  std::vector<bool> is_noticed_unused_;  // [unit]
  std::vector<bool> is_noticed_short_;   // [unit]

  std::optional<Loss> last_loss_;  // of forward, until step
  ExactSum step_loss_;
  ExactSum step_weight_;
  bool is_loss_finite_ = true;
  std::int64_t micro_in_step_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t updates_ = 0;
  std::int64_t skipped_ = 0;
  std::int64_t micro_batches_ = 0;
};

}  // namespace sifr::detail
