#pragma once

#include "examples/llama/shape.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace llama {

/// A parameter under its Hugging Face name. Its place in the list is its number everywhere: of the
/// random values too.
struct NamedParameter {
  std::string name;
  std::vector<std::int64_t> shape;
  double deviation = 0;  // of the initial values, normal around 0
  bool is_norm = false;  // starts as ones instead
};

/// A unit: what is gathered, used and released together.
struct NamedUnit {
  std::string name;
  std::vector<NamedParameter> parameters;
  int gradient_leases = 1;
};

/// "embed", "layers.0" … and "norm" (tied: the head's matrix is embed's, which then sees two
/// gradients leases) or "head" (norm and matrix), in the order in which forward uses them.
[[nodiscard]] std::vector<NamedUnit> units_of(const LlamaShape& shape);

/// Those of all units, end to end.
[[nodiscard]] std::vector<NamedParameter> parameters_of(const LlamaShape& shape);

}  // namespace llama
