#include "tests/engine/small_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sifr::test {

Config make_config(const SmallConfig& small) {
  return parse_config(
      fmt::format(
          R"({{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": {}, "gradient_clipping": {},
    "optimizer": {}, "bf16": {{"enabled": {}}}, {} "zero_optimization": {{{} "stage": {}, "overlap_comm": {}}},
    "sifr": {{{} "comm_timeout": 60}}}})",
          small.accumulation,
          small.clip,
          small.optimizer,
          small.is_bf16,
          small.top,
          small.zero,
          small.stage,
          small.overlap,
          small.sifr),
      "test.json");
}

SmallModel::SmallModel(std::vector<SmallUnit> units) : declared_(std::move(units)) {}

void SmallModel::declare(Units& units) {
  units_.clear();
  for (const SmallUnit& unit : declared_) {
    const Fill fill = [](std::int64_t first, std::span<float> values) {
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = initial_value(first + static_cast<std::int64_t>(i));
    };
    units_.push_back(units.add(unit.name,
                               {{.name = unit.name + ".weight",
                                 .shape = {unit.count},
                                 .fill = fill,
                                 .trainable = unit.trainable}},
                               unit.gradient_leases));
  }
}

Unit SmallModel::unit(const std::string& name) const {
  const auto found = std::find_if(
      declared_.begin(), declared_.end(), [&](const SmallUnit& unit) { return unit.name == name; });
  if (found == declared_.end()) throw std::logic_error("the small model has no unit " + name);
  return unit(static_cast<int>(found - declared_.begin()));
}

void SmallModel::read(Engine& engine) const {
  for (const Unit& unit : units_)
    static_cast<void>(engine.weights(unit));
}

void SmallModel::add(Engine& engine, const std::string& name, float gradient) const {
  const Weights weights = engine.weights(unit(name));
  const Gradients gradients = engine.gradients(unit(name));
  for (std::int64_t i = 0; i < weights.count(0); ++i) {
    if (gradients.gradient_dtype(0) == DType::kFloat32) {
      gradients.data<float>(0)[i] += gradient;
    } else {
      bfloat16& value = gradients.data<bfloat16>(0)[i];
      value = to_bfloat16(to_float(value) + gradient);
    }
  }
}

void SmallModel::run(Engine& engine, float gradient) const {
  read(engine);
  for (auto unit = declared_.rbegin(); unit != declared_.rend(); ++unit) {
    if (!unit->trainable) continue;
    for (int lease = 0; lease < unit->gradient_leases; ++lease)
      add(engine, unit->name, gradient);
  }
}

std::vector<Context> quiet_contexts(int ranks, const Limits& limits) {
  return Context::threads(ranks, {.limits = limits, .log = [](Level, std::string_view) {}});
}

std::vector<float> masters(Engine& engine, const std::string& parameter) {
  std::vector<float> values;
  engine.export_weights(
      [&](const WeightPiece& piece) {
        if (piece.name != parameter) return;
        const float* first = piece.values.as<float>();
        values.insert(values.end(), first, first + piece.values.count);
      },
      ExportAs::kMasters);
  return values;
}

std::string describe(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CommTimeout& caught) {
    return std::string("CommTimeout: ") + caught.what();
  } catch (const CommError& caught) {
    return std::string("CommError: ") + caught.what();
  } catch (const UsageError& caught) {
    return std::string("UsageError: ") + caught.what();
  } catch (const NumericsError& caught) {
    return std::string("NumericsError: ") + caught.what();
  } catch (const OutOfMemory& caught) {
    return std::string("OutOfMemory: ") + caught.what();
  } catch (const std::exception& caught) {
    return caught.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (...) {
    return describe(std::current_exception());
  }
  return {};
}

std::vector<std::string> errors_of_ranks(int ranks,
                                         const SmallConfig& config,
                                         const RankBody& body,
                                         const SmallModel& model) {
  auto contexts = quiet_contexts(ranks);
  const auto one = [&](int rank) {
    Context context = std::move(contexts[static_cast<std::size_t>(rank)]);
    SmallModel own = model;
    auto engine = Engine::initialize(own, make_config(config), {.context = &context});
    body(engine, own);
  };
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  for (const RankError& error : collect_rank_errors(ranks, one))
    errors[static_cast<std::size_t>(error.rank)] = describe(error.error);
  return errors;
}

std::string on_ranks(int ranks,
                     const SmallConfig& config,
                     const std::function<std::string(Engine& engine, SmallModel& model)>& body,
                     const SmallModel& model) {
  std::string result;
  const auto keep = [&](Engine& engine, SmallModel& own) {
    std::string text = body(engine, own);
    if (engine.rank() == 0) result = std::move(text);
  };
  for (const std::string& error : errors_of_ranks(ranks, config, keep, model)) {
    if (!error.empty()) throw std::runtime_error(error);
  }
  return result;
}

}  // namespace sifr::test
