#include "engine/program/rank_environment.hpp"

#include "device/usable_cores.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace sifr::program {
namespace {

bool is_set(const char* variable) {
  return std::getenv(variable) != nullptr;
}

bool is_oversubscribed(int ranks, bool has_own_cores) {
  const int cores = std::max(1, static_cast<int>(usable_cores().size()));
  const char* set = std::getenv("OMP_NUM_THREADS");
  const int chosen = set == nullptr ? 0 : std::atoi(set);  // of "4,2" the outer teams' size
  if (chosen > 0) return ranks > cores / chosen;
  return ranks > 1 && !has_own_cores;
}

bool says_how_to_wait() {
  return is_set("OMP_WAIT_POLICY") || is_set("GOMP_SPINCOUNT") || is_set("KMP_BLOCKTIME");
}

}  // namespace

std::vector<std::string> rank_environment(const MeetingPoint& meeting_point,
                                          int rank,
                                          int ranks,
                                          bool has_own_cores) {
  const std::vector<std::string> own = meeting_point.environment(rank);
  std::vector<std::string> all = own;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view outer = *variable;
    const std::string_view name = outer.substr(0, outer.find('=') + 1);
    const auto replaces = [name](const std::string& one) { return one.starts_with(name); };
    if (std::none_of(own.begin(), own.end(), replaces)) all.emplace_back(outer);
  }
  if (is_oversubscribed(ranks, has_own_cores) && !says_how_to_wait())
    all.emplace_back("OMP_WAIT_POLICY=PASSIVE");
  return all;
}

}  // namespace sifr::program
