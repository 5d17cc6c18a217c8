#include "engine/detail/first_difference.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace sifr::detail {

namespace {

using Text = std::array<char, 512>;

void add_facts(const UnitLayout& unit, std::vector<std::string>& facts) {
  facts.push_back(fmt::format("unit '{}' has gradient_leases {}", unit.name, unit.gradient_leases));
  facts.push_back(fmt::format("unit '{}' has {} parameters", unit.name, unit.parameters.size()));
  for (std::size_t p = 0; p < unit.parameters.size(); ++p) {
    const ParameterSpec& spec = unit.parameters[p].spec;
    facts.push_back(fmt::format("parameter {} of unit '{}' is '{}'", p, unit.name, spec.name));
    const std::string has = fmt::format("parameter '{}' of unit '{}' has ", spec.name, unit.name);
    facts.push_back(fmt::format("{}shape [{}]", has, fmt::join(spec.shape, ", ")));
    facts.push_back(fmt::format("{}{} weights", has, name_of(spec.weights)));
    facts.push_back(fmt::format("{}{} gradients", has, name_of(spec.gradients)));
    facts.push_back(fmt::format("{}trainable {}", has, spec.trainable));
    facts.push_back(fmt::format("{}decay {}", has, spec.decay));
    facts.push_back(fmt::format("{}lr_scale {}", has, spec.lr_scale));
  }
}

template <class T>
std::vector<T> exchanged(Communicator& communicator, std::span<const T> mine) {
  std::vector<T> all(mine.size() * static_cast<std::size_t>(communicator.size()));
  communicator.exchange(
      std::as_bytes(mine), std::as_writable_bytes(std::span(all)), {"initialize"});
  return all;
}

}  // namespace

// A number stands before what it counts, so the first difference of two lists lies within the
// shorter one.
std::vector<std::string> facts_of(const Layout& layout) {
  std::vector<std::string> facts = {fmt::format("there are {} units", layout.unit_count())};
  for (int u = 0; u < layout.unit_count(); ++u) {
    facts.push_back(fmt::format("unit {} is '{}'", u, layout.unit(u).name));
    add_facts(layout.unit(u), facts);
  }
  return facts;
}

std::vector<std::string> facts_of(const Config& config) {
  std::vector<std::string> facts;
  const auto json = nlohmann::ordered_json::parse(to_json(config), nullptr, false).flatten();
  for (const auto& [pointer, value] : json.items())
    facts.push_back(fmt::format("{}: {}", pointer, value.dump()));
  return facts;
}

std::string first_difference(std::span<const std::string> facts,
                             Communicator& communicator,
                             int other) {
  const std::size_t own_count = facts.size();
  const auto counts = exchanged(communicator, std::span(&own_count, 1));
  std::vector<std::size_t> hashes(*std::min_element(counts.begin(), counts.end()));
  std::transform(
      facts.begin(), facts.begin() + std::ssize(hashes), hashes.begin(), std::hash<std::string>());
  const auto all = exchanged(communicator, std::span<const std::size_t>(hashes));
  const auto theirs = all.begin() + other * std::ssize(hashes);
  const auto first = std::mismatch(all.begin(), all.begin() + std::ssize(hashes), theirs).first;
  if (first == all.begin() + std::ssize(hashes)) return "";
  Text text = {};
  facts[static_cast<std::size_t>(first - all.begin())].copy(text.data(), text.size() - 1);
  const auto texts = exchanged(communicator, std::span<const Text>(&text, 1));
  return fmt::format(": on rank 0 {}, on rank {} {}",
                     texts[0].data(),
                     other,
                     texts[static_cast<std::size_t>(other)].data());
}

}  // namespace sifr::detail
