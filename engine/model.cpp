#include "engine/model.hpp"

#include "device/detail/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>

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
  names_->push_back(name);
  declared_.push_back({std::move(name), std::move(parameters), gradient_leases});
  return {names_, static_cast<int>(declared_.size()) - 1};
}

namespace {
std::string name_of_type(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  return status == 0 ? name.get() : type.name();
}
}  // namespace

void detail::throw_other_batch(const std::type_info& own, const std::type_info& asked) {
  throw UsageError(fmt::format("Batch::as: the batch is of type {}, and was asked for as {}",
                               name_of_type(own),
                               name_of_type(asked)));
}

Loss Model::forward(Engine&, const Batch&) {
  throw UsageError("engine.forward() needs the model's forward(): override it");
}

void Model::backward(Engine&, float) {
  throw UsageError("engine.backward() needs the model's backward(): override it");
}

}  // namespace sifr
