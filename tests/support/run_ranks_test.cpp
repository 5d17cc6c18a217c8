#include "tests/support/run_ranks.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace sifr::test {
namespace {

/// Stands for a communicator: waits until the group is aborted.
struct Waiting {
  std::atomic<bool>* is_aborted;
  int rank;
  void wait() const {
    while (!*is_aborted)
      std::this_thread::yield();
    throw std::runtime_error("aborted");
  }
  void abort(const std::string&) const { *is_aborted = true; }
};

TEST_CASE("every rank runs once on its own thread") {
  std::vector<std::thread::id> threads(4);
  run_ranks(
      4, [&](int rank) { threads[static_cast<std::size_t>(rank)] = std::this_thread::get_id(); });
  std::sort(threads.begin(), threads.end());
  CHECK(std::unique(threads.begin(), threads.end()) == threads.end());
  CHECK(threads.front() != std::thread::id());
}

TEST_CASE("a failing rank aborts the group and stands first in the error") {
  std::atomic<bool> is_aborted = false;
  std::vector<std::unique_ptr<Waiting>> group;
  group.reserve(3);
  for (int rank = 0; rank < 3; ++rank)
    group.push_back(std::make_unique<Waiting>(Waiting{&is_aborted, rank}));
  const auto body = [](const std::unique_ptr<Waiting>& member) {
    if (member->rank == 1) throw std::logic_error("out of apples");
    member->wait();
  };

  const std::vector<RankError> errors = collect_rank_errors(group, body);
  REQUIRE(errors.size() == 3);
  CHECK(errors[0].rank == 1);
  CHECK_THROWS_AS(std::rethrow_exception(errors[0].error), std::logic_error);

  is_aborted = false;
  CHECK_THROWS_WITH(run_ranks(group, body), Catch::StartsWith("rank 1: out of apples\nrank "));
}

TEST_CASE("a check inside a rank tells its condition and place") {
  CHECK_THROWS_WITH(run_ranks(2, [](int rank) { SIFR_CHECK_RANK(rank == 0); }),
                    Catch::Contains("rank 1: does not hold: rank == 0 at ") &&
                        Catch::Contains("run_ranks_test.cpp:"));
}

}  // namespace
}  // namespace sifr::test
