#include "device/thread_pool.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

using namespace sifr;

namespace {

using Pieces = std::set<std::pair<std::int64_t, std::int64_t>>;

Pieces pieces_of(ThreadPool& pool, std::int64_t count, std::int64_t grain) {
  std::mutex mutex;
  Pieces pieces;
  int calls = 0;
  pool.parallel_for(count, grain, [&](std::int64_t first, std::int64_t last) {
    const std::scoped_lock lock(mutex);
    pieces.emplace(first, last);
    ++calls;
  });
  CHECK(calls == static_cast<int>(pieces.size()));  // each once
  return pieces;
}

}  // namespace

TEST_CASE("pieces follow from the grain, not from the threads", "[device]") {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    CHECK(pieces_of(pool, 0, 4).empty());
    CHECK(pieces_of(pool, -3, 4).empty());
    CHECK(pieces_of(pool, 1, 4) == Pieces{{0, 1}});
    CHECK(pieces_of(pool, 4, 4) == Pieces{{0, 4}});
    CHECK(pieces_of(pool, 9, 4) == Pieces{{0, 4}, {4, 8}, {8, 9}});
    CHECK(pieces_of(pool, 1000, 1).size() == 1000);
  }
}

TEST_CASE("many parallel loops one after another lose no piece", "[device]") {
  ThreadPool pool(4);
  for (int round = 0; round < 2000; ++round) {
    std::atomic<std::int64_t> sum = 0;
    pool.parallel_for(16, 1, [&](std::int64_t first, std::int64_t) { sum += first; });
    if (sum != 120) FAIL("round " << round << " has the sum " << sum);
  }
}

TEST_CASE("nested parallel loops run inline", "[device]") {
  ThreadPool pool(3);
  std::atomic<int> calls = 0;
  pool.parallel_for(4, 1, [&](std::int64_t, std::int64_t) {
    pool.parallel_for(5, 1, [&](std::int64_t, std::int64_t) { ++calls; });
  });
  CHECK(calls == 20);
}

TEST_CASE("threads may use one pool at the same time", "[device]") {
  ThreadPool pool(2);
  std::atomic<std::int64_t> sum = 0;
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        pool.parallel_for(10, 1, [&](std::int64_t first, std::int64_t) { sum += first; });
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(sum == 27000);  // 3 threads, 200 rounds, 0 + 1 + … + 9
}

TEST_CASE("an exception of a piece is rethrown at the end, and the pool goes on", "[device]") {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    const auto fail_at_seven = [](std::int64_t first, std::int64_t) {
      if (first == 7) throw std::runtime_error("piece 7");
    };
    CHECK_THROWS_WITH(pool.parallel_for(20, 1, fail_at_seven), "piece 7");
    CHECK(pieces_of(pool, 9, 4).size() == 3);
  }
}

TEST_CASE("a pool without threads and pieces without elements are usage errors", "[device]") {
  CHECK_THROWS_AS(ThreadPool(0), UsageError);
  ThreadPool pool(1);
  CHECK_THROWS_AS(pool.parallel_for(3, 0, [](std::int64_t, std::int64_t) {}), UsageError);
}
