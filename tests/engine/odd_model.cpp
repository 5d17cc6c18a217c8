#include "tests/engine/odd_model.hpp"

#include "device/philox.hpp"

namespace sifr::test {

namespace {

constexpr int kTied = 0;
constexpr int kSometimes = 3;     // used only in the second micro-batch
constexpr int kNotOnRankOne = 4;  // never used on rank 1

int first_parameter(int unit) {
  int first = 0;
  for (int u = 0; u < unit; ++u)
    first += static_cast<int>(OddModel::units()[static_cast<std::size_t>(u)].parameters.size());
  return first;
}

bool is_bf16_gradient(const OddParameter& parameter, bool is_bf16) {
  return is_bf16 && !parameter.keep_fp32;
}

}  // namespace

const std::vector<OddUnit>& OddModel::units() {
  static const std::vector<OddUnit> kUnits = {
      {"embed", {{"embed.weight", 1031}}, 2},
      {"first", {{"first.weight", 257}, {"first.empty", 0}, {"first.norm", 13, true, false, true}}},
      {"large", {{"large.weight", 5003, true, true, false, 0.5F}, {"large.frozen", 307, false}}},
      {"sometimes", {{"sometimes.weight", 769}}},
      {"not_on_one", {{"not_on_one.weight", 101}, {"not_on_one.bias", 1, true, false}}},
      {"frozen", {{"frozen.weight", 509, false}}},
      {"last", {{"last.weight", 2}}},
  };
  return kUnits;
}

float OddModel::initial_value(int parameter, std::int64_t index) {
  return philox_normal(7, static_cast<std::uint64_t>(parameter), static_cast<std::uint64_t>(index));
}

float OddModel::gradient(
    float weight, int parameter, std::int64_t index, const OddPlace& place, int use) {
  const auto stream = static_cast<std::uint64_t>(
                          ((parameter * 17 + place.rank) * 1009 + place.step) * 31 + place.micro) *
                          2 +
                      static_cast<std::uint64_t>(use);
  const float noise = philox_normal(11, stream, static_cast<std::uint64_t>(index));
  const float scale = place.step % 2 == 0 ? 0.01F : 0.0001F;  // clipped in some steps only
  return scale * (noise + 0.3F * weight);
}

bool OddModel::is_used(int unit, const OddPlace& place) {
  if (unit == kSometimes) return place.micro % 2 == 1;
  if (unit == kNotOnRankOne) return place.rank != 1;
  return true;
}

void OddModel::declare(Units& units) {
  units_.clear();
  int number = 0;
  for (const OddUnit& unit : OddModel::units()) {
    std::vector<Parameter> parameters;
    for (const OddParameter& odd : unit.parameters) {
      const int p = number++;
      parameters.push_back({.name = odd.name,
                            .shape = {odd.count},
                            .fill =
                                [p](std::int64_t first, std::span<float> values) {
                                  for (std::size_t i = 0; i < values.size(); ++i) {
                                    values[i] =
                                        initial_value(p, first + static_cast<std::int64_t>(i));
                                  }
                                },
                            .decay = odd.decay,
                            .trainable = odd.trainable,
                            .keep_fp32 = odd.keep_fp32,
                            .lr_scale = odd.lr_scale});
    }
    units_.push_back(units.add(unit.name, std::move(parameters), unit.gradient_leases));
  }
}

void OddModel::run(Engine& engine, const OddPlace& place) {
  const int count = static_cast<int>(units_.size());
  for (int u = 0; u < count; ++u) {
    if (is_used(u, place)) static_cast<void>(engine.weights(unit(u)));
  }
  backward_unit(engine, kTied, place, 0);
  for (int u = count - 1; u >= 0; --u) {
    if (is_used(u, place)) backward_unit(engine, u, place, u == kTied ? 1 : 0);
  }
}

void OddModel::backward_unit(Engine& engine, int index, const OddPlace& place, int use) {
  const Weights weights = engine.weights(unit(index));
  const Gradients gradients = engine.gradients(unit(index));
  for (int p = 0; p < static_cast<int>(units()[static_cast<std::size_t>(index)].parameters.size());
       ++p) {
    if (!gradients.has(p)) continue;
    const int number = first_parameter(index) + p;
    for (std::int64_t i = 0; i < weights.count(p); ++i) {
      if (weights.dtype(p) == DType::kFloat32) {
        gradients.data<float>(p)[i] += gradient(weights.data<float>(p)[i], number, i, place, use);
      } else {
        bfloat16& target = gradients.data<bfloat16>(p)[i];
        target =
            to_bfloat16(to_float(target) +
                        gradient(to_float(weights.data<bfloat16>(p)[i]), number, i, place, use));
      }
    }
  }
}

ReferenceZero OddModel::make_reference(const ReferenceOptions& options, bool is_bf16) {
  std::vector<ReferenceParameter> parameters;
  for (const OddUnit& unit : units()) {
    for (const OddParameter& odd : unit.parameters) {
      const int number = static_cast<int>(parameters.size());
      std::vector<float> values(static_cast<std::size_t>(odd.count));
      for (std::int64_t i = 0; i < odd.count; ++i)
        values[static_cast<std::size_t>(i)] = initial_value(number, i);
      parameters.push_back({.name = odd.name,
                            .master = values,
                            .trainable = odd.trainable,
                            .decay = odd.decay,
                            .lr_scale = odd.lr_scale,
                            .is_bf16 = is_bf16_gradient(odd, is_bf16),
                            .is_gradient_bf16 = is_bf16_gradient(odd, is_bf16)});
    }
  }
  return {std::move(parameters), options};
}

ReferenceGradients OddModel::reference_gradients(const ReferenceZero& reference,
                                                 int ranks,
                                                 std::int64_t step,
                                                 std::int64_t accumulation,
                                                 bool is_bf16) {
  ReferenceGradients all(static_cast<std::size_t>(accumulation));
  for (std::int64_t micro = 0; micro < accumulation; ++micro) {
    for (int rank = 0; rank < ranks; ++rank) {
      const OddPlace place{rank, step, micro};
      auto& of_rank = all[static_cast<std::size_t>(micro)].emplace_back();
      for (int u = 0; u < static_cast<int>(units().size()); ++u) {
        for (const OddParameter& odd : units()[static_cast<std::size_t>(u)].parameters) {
          auto& values = of_rank.emplace_back();
          if (!is_used(u, place) || !odd.trainable) continue;
          const int number = static_cast<int>(of_rank.size()) - 1;
          const std::vector<float> weights = reference.weight(static_cast<std::size_t>(number));
          for (std::int64_t i = 0; i < odd.count; ++i) {
            float value = gradient(weights[static_cast<std::size_t>(i)], number, i, place, 0);
            if (is_bf16_gradient(odd, is_bf16)) value = to_float(to_bfloat16(value));
            if (u == kTied)
              value += gradient(weights[static_cast<std::size_t>(i)], number, i, place, 1);
            values.push_back(value);
          }
        }
      }
    }
  }
  return all;
}

}  // namespace sifr::test
