#pragma once

// One rank's weights, gradients and optimizer without an engine.
#include "tests/zero/unit_specs.hpp"
#include "zero/sharded_optimizer.hpp"

#include <functional>

namespace sifr::test {

struct ZeroRank {
  ZeroRank(const std::vector<UnitSpec>& units,
           const ZeroOptions& wanted,
           Communicator& group,
           const AdamOptions& adam = {})
      : options(wanted),
        communicator(group),
        stream(options.overlap ? group.stream() : group.device().compute()),
        layout(units, group.size()),
        plan(make_memory_plan(layout, options)),
        store(layout, options, group),
        memory(layout, options, plan, group),
        reducer(layout, options, plan, memory, group, stream),
        optimizer(layout, options, plan, adam, store, reducer, group, stream) {}

  /// Closes a unit with gradient(element) in its first parameter and zeros in the padding.
  void close(int unit, const std::function<float(std::int64_t)>& gradient) {
    if (!memory.open(unit)) {
      reducer.flush();
      static_cast<void>(memory.open(unit));
    }
    if (gradient) {
      for (int s = 0; s < static_cast<int>(layout.unit(unit).segments.size()); ++s)
        fill(unit, s, gradient);
    }
    reducer.close(unit, static_cast<bool>(gradient));
  }
  void finish() {
    reducer.flush();
    reducer.wait();
  }
  /// This rank's sums of the unit's first segment, padding included.
  [[nodiscard]] std::vector<float> sums(int unit) const {
    const View view = reducer.sums(unit, 0);
    return {view.as<float>(), view.as<float>() + view.count};
  }
  [[nodiscard]] std::vector<float> masters(int unit) const {
    const View view = optimizer.master_slice(unit, 0);
    return {view.as<float>(), view.as<float>() + view.count};
  }
  void set_masters(int unit, float value) const {
    const View view = optimizer.masters(unit, 0);
    std::fill_n(view.as<float>(), view.count, value);
  }

  ZeroOptions options;
  Communicator& communicator;
  Stream& stream;
  Layout layout;
  MemoryPlan plan;
  WeightStore store;
  GradientMemory memory;
  Reducer reducer;
  ShardedOptimizer optimizer;

 private:
  void fill(int unit, int segment, const std::function<float(std::int64_t)>& gradient) {
    const View view = memory.segment(unit, segment);
    const std::int64_t count = layout.unit(unit).parameters[0].spec.count;
    for (std::int64_t i = 0; i < view.count; ++i) {
      const float value = i < count ? gradient(i) : 0;
      if (view.dtype == DType::kFloat32) {
        view.as<float>()[i] = value;
      } else {
        view.as<bfloat16>()[i] = to_bfloat16(value);
      }
    }
  }
};

}  // namespace sifr::test
