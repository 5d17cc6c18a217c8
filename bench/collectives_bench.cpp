// How close do collectives come to the memory's own speed?
//
//   collectives_bench                                        two ranks as threads
//   sifr run --ranks 2 --bind-cores -- collectives_bench     two ranks as processes
//
// The bound of a row is its bytes over the roof: the best of three probes that update 1, 3 and 4
// arrays in place, on all ranks at once, in the same run. Bytes are what one rank reads and writes:
// a reduce-scatter of N elements of g bytes over W ranks reads gN and writes 4N/W, an all-gather in
// place reads and writes gN(W−1)/W each. Beside the roof stand a loop that only reads, and a sum of
// two arrays of the rank's own: what a reduce-scatter between two ranks does, without the other
// one.

#include "bench/measure.hpp"
#include "bench/ranks.hpp"
#include "comm/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace sifr;

struct Options {
  int threads_as_ranks = 2;
  int repeats = 25;
  std::int64_t largest = std::int64_t{128} << 20;  // bytes of the whole tensor
};

/// One rank's part of the benchmark; rank 0 prints.
class Bench {
 public:
  Bench(Communicator& group, const Options& options)
      : group_(group),
        options_(options),
        whole_(group.allocate(options.largest, Purpose::kGradients)),
        other_(group.device().allocate(  // holds fp32 sums of a whole in bf16 too
            std::max(options.largest, 2 * options.largest / group.size()),
            Purpose::kGradients)) {}

  void run() {
    const double roof = measure_roof();
    const double reader = speed_of(bench::limit_probes()[bench::kReader]);
    const double sum = speed_of(bench::limit_probes()[bench::kSummer]);
    if (group_.rank() == 0) {
      fmt::print(
          "{} ranks; for each rank in GB/s: roof {:.1f}, one array read {:.1f}, a sum of two "
          "arrays "
          "of its own {:.1f}\n",
          group_.size(),
          roof / 1e9,
          reader / 1e9,
          sum / 1e9);
      fmt::print("{:<20}{:>11}{:>11}{:>12}{:>9}{:>12}{:>8}{:>14}\n",
                 "collective",
                 "whole KiB",
                 "moved KiB",
                 "median us",
                 "GB/s",
                 "bound us",
                 "ratio",
                 "over bound us");
    }
    for (std::int64_t bytes = 64 << 10; bytes <= options_.largest; bytes *= 2) {
      for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
        const std::int64_t size = size_of(dtype);
        const std::int64_t slice = bytes / size / group_.size();
        report(fmt::format("reduce-scatter {}", name_of(dtype)),
               bytes,
               slice * (size * group_.size() + 4),
               roof,
               [&] { reduce_scatter(slice, dtype); });
      }
      const std::int64_t slice = bytes / 4 / group_.size();
      report("all-gather", bytes, 2 * slice * 4 * (group_.size() - 1), roof, [&] {
        all_gather(slice);
      });
    }
  }

 private:
  /// Median seconds of `work`, which all ranks begin together.
  double measure(const std::function<void()>& work) {
    std::vector<double> seconds;
    for (int i = 0; i < options_.repeats + 3; ++i) {  // the first three warm up
      group_.barrier({"measure"});
      const double taken = bench::seconds_of(work);
      if (i >= 3) seconds.push_back(taken);
    }
    return bench::median(seconds);
  }

  /// Bytes a second.
  double speed_of(const bench::Probe& probe) {
    const std::int64_t count = options_.largest / 4 / probe.arrays;
    auto* const first = reinterpret_cast<float*>(other_.data());
    const bench::Arrays arrays = {first, first + count, first + 2 * count, first + 3 * count};
    return probe.bytes_per_element * static_cast<double>(count) /
           measure([&] { probe.run(arrays, count); });
  }

  double measure_roof() {
    double roof = 0;
    for (const bench::Probe& probe : bench::roof_probes())
      roof = std::max(roof, speed_of(probe));
    return roof;
  }

  void reduce_scatter(std::int64_t slice, DType dtype) {
    const ConstView whole = {whole_.data(), slice * group_.size(), dtype};
    const ReducePart part = {
        .whole = whole, .slice_count = slice, .sum = {other_.data(), slice, DType::kFloat32}};
    group_.reduce_scatter({&part, 1}, {"bench"}, group_.device().compute()).wait();
  }

  void all_gather(std::int64_t slice) {
    const View whole = {whole_.data(), slice * group_.size(), DType::kFloat32};
    const GatherPart part = {whole.slice(group_.rank() * slice, slice), whole};
    group_.all_gather({&part, 1}, {"bench"}, group_.device().compute()).wait();
  }

  void report(const std::string& name,
              std::int64_t whole,
              std::int64_t bytes,
              double roof,
              const std::function<void()>& work) {
    const double seconds = measure(work);
    const double bound = static_cast<double>(bytes) / roof;
    if (group_.rank() != 0) return;
    fmt::print("{:<20}{:>11}{:>11}{:>12.1f}{:>9.1f}{:>12.1f}{:>8.2f}{:>14.1f}\n",
               name,
               whole >> 10,
               bytes >> 10,
               seconds * 1e6,
               static_cast<double>(bytes) / seconds / 1e9,
               bound * 1e6,
               seconds / bound,
               (seconds - bound) * 1e6);
  }

  Communicator& group_;
  const Options& options_;
  SharedBuffer whole_;
  Buffer other_;
};

void add_options(CLI::App& app, Options& options) {
  app.add_option(
         "--threads-as-ranks", options.threads_as_ranks, "ranks, where no launcher started any")
      ->check(CLI::Range(1, bench::kMostThreads));
  app.add_option("--repeats", options.repeats, "measurements of each row")
      ->check(CLI::Range(1, bench::kMostRounds));
  app.add_option("--largest", options.largest, "bytes of the largest tensor")
      ->check(CLI::Range(std::int64_t{1}, bench::kMostElements));
}

}  // namespace

int main(int count, char** arguments) {
  Options options;
  return bench::run_program(
      {.name = "collectives_bench",
       .about = "Speed of reduce-scatter and all-gather against the speed of memory",
       .add_options = [&](CLI::App& app) { add_options(app, options); },
       .run =
           [&] {
             bench::run_ranks(options.threads_as_ranks, 1, [&](Context& context) {
               Bench(context.communicator(), options).run();
             });
           }},
      count,
      arguments);
}
