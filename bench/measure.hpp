#pragma once

// What the benchmarks share: a clock, medians, the memory's own speed, and their command lines.
#include "device/thread_pool.hpp"

#include <CLI/CLI.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace bench {

/// Bounds of options, far beyond any machine: what is computed from them does not overflow.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
inline constexpr int kMostThreads = 1024;
inline constexpr int kMostRounds = 1'000'000;

/// Seconds since some moment.
[[nodiscard]] double now();

/// Seconds that `work` takes.
template <class F>
[[nodiscard]] double seconds_of(const F& work) {
  const double start = now();
  work();
  return now() - start;
}

[[nodiscard]] double median(std::vector<double> values);

/// ours[i] / theirs[i], one for each round: what a noisy moment does to both leaves it alone.
[[nodiscard]] std::vector<double> ratios(const std::vector<double>& ours,
                                         const std::vector<double>& theirs);

/// The arrays that a probe passes over, from the same element of each on.
using Arrays = std::array<float*, 4>;

/// A loop without much arithmetic. The best of those that update in place is the memory's roof.
struct Probe {
  const char* name;
  int arrays;
  double bytes_per_element;  // read and written
  void (*run)(const Arrays& arrays, std::int64_t count);
};

/// Updates 1, 3 and 4 arrays in place.
[[nodiscard]] std::span<const Probe> roof_probes();
/// What loops with other shares of reading reach: a reader; a sum of two arrays past the caches,
/// the reads and writes of a reduce-scatter between two ranks; three arrays updated from a fourth,
/// those of AdamW.
inline constexpr std::size_t kReader = 0, kSummer = 1, kUpdater = 2;
[[nodiscard]] std::span<const Probe> limit_probes();

/// A line of a table of speeds.
struct Row {
  std::string name;
  double bytes_per_element;  // read and written
  std::int64_t elements;
  std::function<double()> run;      // seconds
  std::vector<double> speeds = {};  // GB/s, one for each round that counts
  void measure(bool counts);
};

/// `probes` on arrays of `count` elements, by all threads of the pool.
[[nodiscard]] std::vector<Row> probe_rows(std::span<const Probe> probes,
                                          const Arrays& arrays,
                                          std::int64_t count,
                                          sifr::ThreadPool& pool);

/// Each row's bytes, median time and speed, and the median of its share of the roof's in the same
/// round. The roof is the fastest of `roofs`.
void print_table(const std::vector<Row>& roofs, const std::vector<const std::vector<Row>*>& others);

struct Program {
  const char* name;
  const char* about;
  std::function<void(CLI::App&)> add_options;
  std::function<void()> run;
};
/// Parses the command line and runs. Returns the exit code: 0, 1 where `run` throws, 2 with the
/// usage for arguments that are not understood.
[[nodiscard]] int run_program(const Program& program, int count, char** arguments);

}  // namespace bench
