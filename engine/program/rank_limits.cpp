#include "engine/program/rank_limits.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <string>

namespace sifr::program {
namespace {

/// Of a rank the two pipes of its output and its connection while the ranks meet; the rest is the
/// launcher's own.
rlim_t files_for(int ranks) noexcept {
  return 3 * static_cast<rlim_t>(ranks) + 20;
}

std::string too_few_files(int ranks, rlim_t allowed) {
  return fmt::format("the limit of open files (ulimit -n) is {}: {} ranks need {}",
                     allowed,
                     ranks,
                     files_for(ranks));
}

rlim_t limit_of_files() noexcept {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

}  // namespace

void check_limits(int ranks) {
  const rlim_t allowed = limit_of_files();
  if (allowed < files_for(ranks)) throw std::runtime_error(too_few_files(ranks, allowed));
}

std::runtime_error explained(const std::system_error& error, int ranks) {
  const int code = error.code().value();
  if (code == EMFILE)
    return std::runtime_error(too_few_files(ranks, limit_of_files()) +
                              ", beside those open before");
  if (code != EAGAIN) return error;
  return std::runtime_error(fmt::format(
      "{}: the limit of processes (ulimit -u, or the container's) is too small for {} ranks",
      error.what(),
      ranks));
}

}  // namespace sifr::program
