#pragma once

#include "../config_schema/batch_plan.hpp"
#include "../config_schema/config.hpp"
#include "../device/memory.hpp"
#include "./context.hpp"
#include "./lease.hpp"
#include "./model.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sifr {

/// A gradient is not finite and the configuration says to stop. Weights are untouched and
/// the engine stays usable: lower the learning rate or go back to an earlier state.
class SIFR_API NumericsError : public std::runtime_error, public Error {
 public:
  using std::runtime_error::runtime_error;
  [[nodiscard]] const char* message() const noexcept override { return what(); }
};

/// What Engine::initialize takes beside model and configuration.
struct Setup {
  Context* context = nullptr;  // null: the engine makes and owns one from the environment
  Hints hints = {};            // what "auto" stands for
};

struct StepOptions {
  std::optional<double> weight =
      {};  // of this rank's micro-batch; unset: forward()'s, or 1. 0: a rank without data
  std::optional<double> loss = {};  // sum of losses of this micro-batch; unset: forward()'s
  std::optional<double> lr =
      {};  // at a boundary: this update's learning rate instead of the schedule's
  std::optional<bool> boundary = {};  // overrides gradient_accumulation_steps
};

enum class Outcome : std::uint8_t { kAccumulated, kUpdated, kSkipped };

/// Equal on every rank.
struct StepReport {
  Outcome outcome = Outcome::kAccumulated;
  std::int64_t step = 0;           // boundaries so far, skipped ones too
  std::int64_t updates = 0;        // updates applied; Adam's k and the schedule count these
  std::int64_t skipped = 0;        // boundaries without an update
  std::int64_t micro_batches = 0;  // all so far
  double loss = 0;  // Σ losses / Σ weights over ranks and the step's micro-batches so far
  double gradient_norm = 0;  // at a boundary: L2 norm of the averaged gradient before clipping
  double weight = 0;         // Σ weights over ranks and the step's micro-batches so far
  double lr = 0;             // that the update used, or would have used
  double loss_scale = 1;
};

/// kStreamed: units are gathered as they are leased, collectively, like in training. kWhole: all
/// are gathered once at the start of the scope, and then leases are local: ranks may run different
/// code (rank 0 generates text).
enum class Residency : std::uint8_t { kStreamed, kWhole };

/// A scope between steps in which weights may be leased in any order and no gradients exist.
/// Collective: evaluate(), and for kStreamed the engine's next call after the scope, which gives
/// back what the scope held.
class SIFR_API Evaluation {
 public:
  Evaluation(Evaluation&& other) noexcept;
  Evaluation& operator=(Evaluation&&) = delete;
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;
  ~Evaluation();

 private:
  friend class detail::EngineState;
  explicit Evaluation(detail::EngineState* engine) noexcept : engine_(engine) {}
  detail::EngineState* engine_;
};

/// A stretch of one parameter, handed to a Sink. Valid during the call.
struct WeightPiece {
  std::string_view name;
  std::span<const std::int64_t> shape;
  std::int64_t first = 0;  // index of the first element
  ConstView values = {};
};
using Sink = std::function<void(const WeightPiece&)>;
enum class ExportAs : std::uint8_t {
  kWeights,
  kMasters
};  // in their own dtype, or the fp32 masters

/// A ZeRO training engine: it owns weights, gradients and optimizer state, spread as the ds_config
/// says, and runs the step. One per rank; every rank makes the same calls in the same order; one
/// thread at a time. The model and the context outlive it.
///
/// UsageError: fix the call. ConfigError: fix the file. OutOfMemory: at start, with the table; from
/// evaluate() and export_weights() on every rank, and the engine is usable. NumericsError: see
/// there. CommError, DeviceError, in a group an OutOfMemory of a lease or of step(), or an
/// exception of the model during backward: the engine is failed; every later call throws the same
/// error, and only destruction is left.
class SIFR_API Engine {
 public:
  using Declare = std::function<void(Units&)>;
  /// Collective. `config`: a path to a ds_config.json.
  [[nodiscard]] static Engine initialize(Model& model,
                                         const std::filesystem::path& config,
                                         const Setup& setup = {});
  [[nodiscard]] static Engine initialize(const Declare& declare,
                                         const std::filesystem::path& config,
                                         const Setup& setup = {});
  [[nodiscard]] static Engine initialize(Model& model,
                                         const Config& config,
                                         const Setup& setup = {});
  [[nodiscard]] static Engine initialize(const Declare& declare,
                                         const Config& config,
                                         const Setup& setup = {});
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  /// Whole weights of a unit; waits for the gather. Leases count: nested and repeated ones are
  /// free. None may be open at step(). OutOfMemory if open leases fill the window. At stage 3,
  /// where stage3_max_live_parameters holds not all units, leases of units that overlap must end in
  /// the same places on every rank.
  [[nodiscard]] Weights weights(const Unit& unit);
  /// Gradient buffers of a unit to add into. UsageError beyond the unit's declared number of
  /// leases, and in evaluation.
  [[nodiscard]] Gradients gradients(const Unit& unit);
  /// d(objective)/d(Loss::sum) of this step; constant within a step.
  [[nodiscard]] float loss_gradient() const;

  /// Calls the model's forward and keeps its loss and weight for step().
  Loss forward(const Batch& batch);
  /// Calls the model's backward with loss_gradient().
  void backward();
  /// Ends the micro-batch: closes and reduces what is open, meets the other ranks; at a boundary
  /// updates the weights. Collective. Throws NumericsError (weights untouched) where a sum is not
  /// finite and the configuration stops then.
  StepReport step(const StepOptions& options = {});
  /// Forgets the gradients accumulated since the last boundary. Collective, except that a group of
  /// one may call it after an exception in backward, and the engine is usable again.
  void drop_gradients();
  /// Waits for everything pending on this rank.
  void synchronize();

  [[nodiscard]] Evaluation evaluate(Residency residency = Residency::kStreamed);
  [[nodiscard]] bool is_evaluating() const noexcept;

  /// Collective, between steps: every parameter in declaration order, whole, to `sink` on rank
  /// `root` alone, in pieces of at most 64 MiB. A sink that throws on the root fails the call on
  /// every rank; the engine stays usable.
  void export_weights(const Sink& sink, ExportAs what = ExportAs::kWeights, int root = 0);
  /// Collective: 32 hex digits, equal for equal weights at any stage, tier and number of ranks
  /// (docs/numerics.md).
  [[nodiscard]] std::string weights_hash();

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
  [[nodiscard]] Context& context() noexcept;
  [[nodiscard]] BatchPlan batch() const noexcept;
  /// Whether the coming step() is a boundary by gradient_accumulation_steps.
  [[nodiscard]] bool is_boundary() const noexcept;
  /// The learning rate of the coming update.
  [[nodiscard]] double lr() const;
  /// Bytes that this rank holds, by purpose.
  [[nodiscard]] MemoryTable memory() const;

  /// The trainer's own memory, accounted like the engine's; freed or given back at the end of the
  /// returned object.
  [[nodiscard]] Buffer allocate(std::int64_t bytes, Purpose purpose = Purpose::kActivation);
  [[nodiscard]] Charge charge(std::int64_t bytes, Purpose purpose = Purpose::kActivation);

 private:
  explicit Engine(std::unique_ptr<detail::EngineState> state) noexcept;
  std::unique_ptr<detail::EngineState> state_;
};

}  // namespace sifr
