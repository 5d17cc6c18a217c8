#pragma once

#include "config_schema/detail/known_keys.hpp"

#include <string>
#include <vector>

namespace sifr::detail {

/// One key that sifr uses, as the sections describe it.
struct UsedKey {
  std::string pointer;
  std::string type;  ///< for people: "integer", `"log"` or `"linear"`, …
  std::string default_text;
  std::string meaning;
  std::string formula;  ///< what "auto" becomes; empty: it has none
};

/// Every key that sifr uses, in the order of the sections.
[[nodiscard]] std::vector<UsedKey> used_keys();

/// The body of docs/config.md's tables: the keys that sifr uses, then those that it knows.
[[nodiscard]] std::string reference_tables();

}  // namespace sifr::detail
