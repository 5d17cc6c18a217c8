#include "engine/model.hpp"

#include "device/detail/check.hpp"

#include <algorithm>

namespace sifr {

Unit Units::add(std::string name, std::vector<Parameter> parameters, int gradient_leases) {
  SIFR_REQUIRE(UsageError, !name.empty(), "Units::add: a unit needs a name");
  SIFR_REQUIRE(UsageError,
               gradient_leases >= 1,
               "Units::add('{}'): gradient_leases is {}, and must be 1 or more",
               name,
               gradient_leases);
  const bool is_known = std::any_of(
      declared_.begin(), declared_.end(), [&](const Declared& unit) { return unit.name == name; });
  SIFR_REQUIRE(UsageError, !is_known, "Units::add('{}'): there is a unit of that name", name);
  declared_.push_back({std::move(name), std::move(parameters), gradient_leases});
  return {owner_, static_cast<int>(declared_.size()) - 1, declared_.back().name};
}

Loss Model::forward(Engine&, const Batch&) {
  throw UsageError("engine.forward() needs the model's forward(): override it");
}

void Model::backward(Engine&, float) {
  throw UsageError("engine.backward() needs the model's backward(): override it");
}

}  // namespace sifr
