#pragma once

#include "comm/group.hpp"
#include "tests/support/run_ranks.hpp"

#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace sifr::test {

/// What each rank's body threw; null where it returned.
using GroupErrors = std::vector<std::exception_ptr>;
using GroupBody = std::function<void(Communicator&)>;

/// Runs `body` on a new group of threads. Each thread destroys its communicator when its body ends,
/// so that leaving is part of what is tested.
inline GroupErrors collect_group_errors(int ranks,
                                        const GroupOptions& options,
                                        const GroupBody& body) {
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<Device*> pointers;
  for (int r = 0; r < ranks; ++r) {
    devices.push_back(make_host_device({}));
    pointers.push_back(devices.back().get());
  }
  auto group = make_thread_group(pointers, options);
  const auto one = [&](int rank) {
    const auto own = std::move(group[static_cast<std::size_t>(rank)]);
    try {
      body(*own);
    } catch (const std::exception& error) {
      own->abort(error.what());
      throw;
    }
  };
  GroupErrors errors(group.size());
  for (const RankError& error : collect_rank_errors(ranks, one)) {
    errors[static_cast<std::size_t>(error.rank)] = error.error;
  }
  return errors;
}

/// The same; throws what the first failing rank threw.
inline void run_group(int ranks, const GroupBody& body) {
  for (const std::exception_ptr& error : collect_group_errors(ranks, {}, body)) {
    if (error) std::rethrow_exception(error);
  }
}

/// An assertion for rank threads, with a text made on the spot.
inline void expect(bool condition, const std::string& text) {
  if (!condition) throw std::runtime_error(text);
}

}  // namespace sifr::test
