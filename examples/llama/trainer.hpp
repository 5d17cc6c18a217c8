#pragma once

#include "examples/llama/hugging_face_writer.hpp"
#include "examples/llama/inputs.hpp"
#include "examples/llama/llama_model.hpp"
#include "examples/llama/metrics.hpp"
#include "examples/llama/progress.hpp"
#include "examples/llama/save_lock.hpp"
#include "examples/llama/signal_watch.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace llama {

enum class End : std::uint8_t { kDone, kInterrupted };

/// One rank's run of the program, from the first step to the last result.
class Trainer {
 public:
  /// Collective. All arguments outlive it.
  Trainer(sifr::Context& context,
          const Options& options,
          const Inputs& inputs,
          SignalWatch& signals);
  /// Collective: trains and leaves behind what the options ask for. An interruption on any rank
  /// ends the step on all of them, and what takes long after it, evaluation and generation, is left
  /// out.
  [[nodiscard]] End run();

 private:
  [[nodiscard]] StepMetrics train_step(std::int64_t step);
  void read_step(std::int64_t step);
  [[nodiscard]] sifr::StepReport compute_step();
  void report(const StepMetrics& metrics);
  /// Collective: where `action` fails on all ranks alike and leaves the engine usable (a file that
  /// cannot be read or written, a gradient that is not finite) no trained weights are lost.
  void or_save(const std::function<void()>& action);
  void do_between_steps(std::int64_t done);
  /// Collective: whether a signal came to any rank.
  [[nodiscard]] bool is_interrupted();
  void evaluate();
  /// Where --save asks for it.
  void save();
  /// Where that fails rank 0 says `otherwise` and why, and the run goes on.
  void save_or_warn(const std::string& otherwise);
  [[nodiscard]] SaveOptions save_options() const;
  [[nodiscard]] sifr::DType engine_dtype() const;
  [[nodiscard]] sifr::ExportAs saved_as() const;
  [[nodiscard]] std::int64_t micro_batch_tokens() const;
  [[nodiscard]] std::int64_t step_tokens() const;
  /// Of a micro-batch: [row][position], one more than the sequence length each.
  [[nodiscard]] std::span<std::int32_t> tokens(std::int64_t micro_batch) const;
  [[nodiscard]] End finish();
  [[nodiscard]] std::vector<std::int32_t> prompt() const;
  /// Throws sifr::UsageError before any training.
  void require_room_to_generate() const;
  void generate();
  [[nodiscard]] bool is_root() const noexcept { return engine_.rank() == 0; }

  const Options& options_;
  const Inputs& inputs_;
  SignalWatch& signals_;
  Llama model_;
  sifr::Engine engine_;
  sifr::Buffer tokens_;                 // of a step: [micro-batch][row][position]
  std::optional<SaveLock> save_lock_;   // on rank 0
  std::optional<MetricsFile> metrics_;  // on rank 0
  Progress progress_;
};

}  // namespace llama
