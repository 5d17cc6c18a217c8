#include "bench/step_rows.hpp"

#include "device/device.hpp"

#include <fmt/format.h>

#include <string>

namespace bench {
namespace {

using sifr::bfloat16;
using sifr::DType;

constexpr std::int64_t kBias = 1000;  // elements of a unit's second parameter

void fill(sifr::View gradient) {
  for (std::int64_t i = 0; i < gradient.count; ++i) {
    const float value = 1e-3F * static_cast<float>(i % 97 - 48);
    if (gradient.dtype == DType::kFloat32) {
      gradient.as<float>()[i] = value;
    } else {
      gradient.as<bfloat16>()[i] = sifr::to_bfloat16(value);
    }
  }
}

std::vector<sifr::UnitSpec> specs(const StepOptions& options, DType dtype) {
  std::vector<sifr::UnitSpec> units;
  for (std::int64_t u = 0; u < options.units(); ++u) {
    sifr::UnitSpec unit{.name = fmt::format("unit {}", u)};
    for (const std::int64_t count : {options.unit_elements - kBias, kBias}) {
      unit.parameters.push_back({.name = fmt::format("{}.{}", unit.name, count),
                                 .shape = {count},
                                 .count = count,
                                 .weights = dtype,
                                 .gradients = dtype});
    }
    units.push_back(std::move(unit));
  }
  return units;
}

sifr::Config config(const StepOptions& options, DType dtype) {
  return sifr::parse_config(fmt::format(R"({{"train_micro_batch_size_per_gpu": 1,
    "gradient_accumulation_steps": 1, "bf16": {{"enabled": {}}},
    "optimizer": {{"type": "AdamW", "params": {{"lr": 1e-3}}}},
    "zero_optimization": {{"stage": {}}}}})",
                                        dtype == DType::kBFloat16,
                                        options.stage),
                            "step_bench");
}

/// Bytes of the weight that an update writes beside its master.
double weight_out(DType dtype) {
  return dtype == DType::kFloat32 ? 0.0 : static_cast<double>(size_of(dtype));
}

}  // namespace

StepParts::StepParts(const StepOptions& options, DType dtype, sifr::Communicator& group)
    : dtype_(dtype),
      options_{.stage = options.stage},
      layout_(specs(options, dtype), group.size()),
      plan_(make_memory_plan(layout_, options_)),
      store_(layout_, options_, group),
      memory_(layout_, options_, plan_, group),
      reducer_(layout_, options_, plan_, memory_, group, group.device().compute()),
      optimizer_(layout_, options_, plan_, {}, store_, reducer_, group, group.device().compute()),
      owned_(options.owned(group.size())) {
  for (int u = 0; u < layout_.unit_count(); ++u) {
    open(u);
    fill(memory_.segment(u, 0));
    reducer_.close(u, true);
  }
  finish();
}

std::vector<Row> StepParts::rows() {
  const std::string type(name_of(dtype_));
  const auto gradients = static_cast<double>(layout_.group_size() * size_of(dtype_));
  const auto sum = [this] {
    reducer_.begin_step();
    return reduce();
  };
  const auto norm = [this] {
    return seconds_of([&] { static_cast<void>(optimizer_.squared_norm()); });
  };
  const auto update = [this] {
    ++updates_;
    return seconds_of(
        [&] { optimizer_.update({.lr = 1e-3, .update = updates_, .factor = 0.37F}); });
  };
  return {{type + ": sum over ranks", gradients + 4, owned_, sum},
          {type + ": sum accumulated", gradients + 8, owned_, [this] { return reduce(); }},
          {type + ": norm", 4, owned_, norm},
          {type + ": AdamW update", 28 + weight_out(dtype_), owned_, update}};
}

void StepParts::open(int unit) {
  if (memory_.open(unit)) return;
  reducer_.flush();
  static_cast<void>(memory_.open(unit));
}

void StepParts::finish() {
  reducer_.flush();
  reducer_.wait();
}

double StepParts::reduce() {
  return seconds_of([&] {
    for (int u = layout_.unit_count() - 1; u >= 0; --u) {
      open(u);
      reducer_.close(u, true);
    }
    finish();
  });
}

WholeStep::WholeStep(const StepOptions& options, DType dtype, sifr::Context& context)
    : options_(options),
      dtype_(dtype),
      engine_(sifr::Engine::initialize(*this, config(options, dtype), {.context = &context})) {}

void WholeStep::declare(sifr::Units& units) {
  for (std::int64_t u = 0; u < options_.units(); ++u) {
    const std::string name = fmt::format("unit {}", u);
    units_.push_back(
        units.add(name,
                  {{.name = name + ".weight", .shape = {options_.unit_elements - kBias}},
                   {.name = name + ".bias", .shape = {kBias}}}));
  }
}

Row WholeStep::row() {
  const auto bytes = static_cast<double>(size_of(dtype_));
  const double sum = engine_.size() * bytes + 4;
  const double gather = options_.stage < 3 ? 2 * bytes * (engine_.size() - 1) : 0;
  return {std::string(name_of(dtype_)) + ": step()",
          sum + 4 + 28 + weight_out(dtype_) + gather,
          options_.owned(engine_.size()),
          [this] { return step(); }};
}

// The leases are not timed.
double WholeStep::step() {
  const std::int64_t count = options_.unit_elements - kBias;
  for (const sifr::Unit& unit : units_) {
    const sifr::Gradients gradients = engine_.gradients(unit);
    void* const data = dtype_ == DType::kFloat32 ? static_cast<void*>(gradients.data<float>(0))
                                                 : static_cast<void*>(gradients.data<bfloat16>(0));
    fill({static_cast<std::byte*>(data), count, dtype_});
  }
  return seconds_of([&] { static_cast<void>(engine_.step()); });
}

}  // namespace bench
