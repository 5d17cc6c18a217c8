#include "config_schema/detail/known_keys.hpp"

#include <algorithm>

namespace sifr::detail {

std::vector<KnownKey> known_keys() {
  std::vector<KnownKey> keys;
  for (const auto table : {known_training_keys(), known_zero_keys(), known_systems_keys()}) {
    keys.insert(keys.end(), table.begin(), table.end());
  }
  return keys;
}

const KnownKey* find_known_key(std::string_view pointer) {
  for (const auto table : {known_training_keys(), known_zero_keys(), known_systems_keys()}) {
    const auto found = std::find_if(
        table.begin(), table.end(), [&](const KnownKey& key) { return key.pointer == pointer; });
    if (found != table.end()) return &*found;
  }
  return nullptr;
}

}  // namespace sifr::detail
