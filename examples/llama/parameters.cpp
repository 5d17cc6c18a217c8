#include "examples/llama/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace llama {
namespace {

constexpr double kDeviation = 0.02;

NamedParameter norm(const std::string& name, std::int64_t width) {
  return {name, {width}, 0, true};
}

/// In the order of BlockParameter.
NamedUnit block_unit(const LlamaShape& shape, std::int64_t layer) {
  const std::string unit = "layers." + std::to_string(layer);
  const std::string front = "model." + unit + ".";
  // Matrices that write to the residual stream start smaller (GPT-2): two per layer add up there.
  const double residual = kDeviation / std::sqrt(2.0 * static_cast<double>(shape.layers));
  const auto matrix = [&front](
                          const char* name, std::int64_t out, std::int64_t in, double deviation) {
    return NamedParameter{front + name, {out, in}, deviation, false};
  };
  return {unit,
          {norm(front + "input_layernorm.weight", shape.hidden),
           matrix("self_attn.q_proj.weight", shape.query_width(), shape.hidden, kDeviation),
           matrix("self_attn.k_proj.weight", shape.kv_width(), shape.hidden, kDeviation),
           matrix("self_attn.v_proj.weight", shape.kv_width(), shape.hidden, kDeviation),
           matrix("self_attn.o_proj.weight", shape.hidden, shape.query_width(), residual),
           norm(front + "post_attention_layernorm.weight", shape.hidden),
           matrix("mlp.gate_proj.weight", shape.intermediate, shape.hidden, kDeviation),
           matrix("mlp.up_proj.weight", shape.intermediate, shape.hidden, kDeviation),
           matrix("mlp.down_proj.weight", shape.hidden, shape.intermediate, residual)}};
}

}  // namespace

std::vector<NamedUnit> units_of(const LlamaShape& shape) {
  std::vector<NamedUnit> units;
  const NamedParameter embedding = {
      "model.embed_tokens.weight", {shape.vocab, shape.hidden}, kDeviation, false};
  units.push_back({"embed", {embedding}, shape.tied ? 2 : 1});
  for (std::int64_t layer = 0; layer < shape.layers; ++layer)
    units.push_back(block_unit(shape, layer));
  NamedUnit last = {shape.tied ? "norm" : "head", {norm("model.norm.weight", shape.hidden)}};
  if (!shape.tied)
    last.parameters.push_back({"lm_head.weight", {shape.vocab, shape.hidden}, kDeviation, false});
  units.push_back(last);
  return units;
}

std::vector<NamedParameter> parameters_of(const LlamaShape& shape) {
  std::vector<NamedParameter> all;
  for (NamedUnit& unit : units_of(shape))
    std::move(unit.parameters.begin(), unit.parameters.end(), std::back_inserter(all));
  return all;
}

}  // namespace llama
