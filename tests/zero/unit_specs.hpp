#pragma once

#include "zero/layout.hpp"

#include <string>
#include <utility>
#include <vector>

namespace sifr::test {

inline ParameterSpec parameter(std::string name,
                               std::int64_t count,
                               DType dtype = DType::kFloat32) {
  return {.name = std::move(name),
          .shape = {count},
          .count = count,
          .weights = dtype,
          .gradients = dtype};
}

/// A unit of one parameter.
inline UnitSpec unit(const std::string& name,
                     std::int64_t count,
                     DType dtype = DType::kFloat32,
                     int gradient_leases = 1) {
  return {.name = name,
          .parameters = {parameter(name + ".weight", count, dtype)},
          .gradient_leases = gradient_leases};
}

inline UnitSpec frozen(UnitSpec spec) {
  for (ParameterSpec& parameter : spec.parameters)
    parameter.trainable = false;
  return spec;
}

}  // namespace sifr::test
