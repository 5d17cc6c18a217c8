#include "config_schema/detail/nearest_key.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace sifr::detail {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Letters to insert, delete, replace, or swap with a neighbour; case does not count.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j)
    d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + replaced});
      const bool is_swap = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (is_swap) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string_view nearest_key(std::string_view key, std::span<const std::string_view> candidates) {
  if (key.size() > kLongestKey) return {};
  std::string_view nearest;
  std::size_t best =
      std::max<std::size_t>(1, key.size() / 4) + 1;  // a quarter of the letters may differ
  for (const std::string_view candidate : candidates) {
    const std::size_t shorter = std::min(key.size(), candidate.size());
    if (std::max(key.size(), candidate.size()) - shorter >= best) continue;
    if (const std::size_t distance = edit_distance(key, candidate); distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace sifr::detail
