#pragma once

// The rows of step_bench: a step's parts, and the step.
#include "bench/measure.hpp"
#include "sifr.hpp"
#include "zero/sharded_optimizer.hpp"

#include <vector>

namespace bench {

struct StepOptions {
  int ranks = 1;
  int threads = 0;  // of each rank; 0: cores / ranks
  int stage = 1;
  int rounds = 9;
  std::int64_t elements = 64 << 20;
  std::int64_t unit_elements = 4 << 20;
  [[nodiscard]] std::int64_t units() const { return elements / unit_elements; }
  /// Elements of the model that a rank of `size` owns.
  [[nodiscard]] std::int64_t owned(int size) const { return units() * unit_elements / size; }
};

/// What step() calls, one by one. Collective, like all of its rows.
class StepParts {
 public:
  StepParts(const StepOptions& options, sifr::DType dtype, sifr::Communicator& group);
  [[nodiscard]] std::vector<Row> rows();

 private:
  void open(int unit);
  void finish();
  double reduce();

  sifr::DType dtype_;
  sifr::ZeroOptions options_;
  sifr::Layout layout_;
  sifr::MemoryPlan plan_;
  sifr::WeightStore store_;
  sifr::GradientMemory memory_;
  sifr::Reducer reducer_;
  sifr::ShardedOptimizer optimizer_;
  std::int64_t owned_;
  std::int64_t updates_ = 0;
};

/// step() at a boundary, all of it. Collective, like its row.
class WholeStep final : public sifr::Model {
 public:
  WholeStep(const StepOptions& options, sifr::DType dtype, sifr::Context& context);
  void declare(sifr::Units& units) override;
  [[nodiscard]] Row row();

 private:
  double step();

  const StepOptions& options_;
  sifr::DType dtype_;
  std::vector<sifr::Unit> units_;
  sifr::Engine engine_;
};

}  // namespace bench
