// How close do collectives come to the memory's own speed?
//
//   collectives_bench                                        two ranks as threads
//   sifr run --ranks 2 --bind-cores -- collectives_bench     two ranks as processes
//
// The bound of a row is its bytes over the roof: the best of three probes that update 1, 3 and 4
// arrays in place, on all ranks at once, in the same run. Bytes are what one rank reads and writes:
// a reduce-scatter of N fp32 elements over W ranks reads 4N and writes 4N/W, an all-gather in place
// reads and writes 4N(W−1)/W each.

#include "comm/group.hpp"
#include "device/detail/clones.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

namespace {

using namespace sifr;
using Clock = std::chrono::steady_clock;

struct Options {
  int threads_as_ranks = 2;
  int repeats = 25;
  std::int64_t largest = std::int64_t{128} << 20;  // bytes of the whole tensor
};

SIFR_CLONES void update_one(float* a, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    a[i] = a[i] * 0.999F;
}

SIFR_CLONES void update_three(float* a, float* b, float* c, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    a[i] = a[i] * 0.999F;
    b[i] = b[i] * 0.999F;
    c[i] = c[i] * 0.999F;
  }
}

SIFR_CLONES void update_four(float* a, float* b, float* c, float* d, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    a[i] = a[i] * 0.999F;
    b[i] = b[i] * 0.999F;
    c[i] = c[i] * 0.999F;
    d[i] = d[i] * 0.999F;
  }
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// One rank's part of the benchmark; rank 0 prints.
class Bench {
 public:
  Bench(Communicator& group, const Options& options)
      : group_(group),
        options_(options),
        whole_(group.allocate(options.largest, Purpose::kGradients)),
        other_(group.device().allocate(options.largest, Purpose::kGradients)) {}

  void run() {
    const double roof = measure_roof();
    if (group_.rank() == 0) {
      fmt::print("{} ranks; roof {:.1f} GB/s for each rank\n", group_.size(), roof / 1e9);
      fmt::print("{:<15}{:>12}{:>12}{:>9}{:>12}{:>8}{:>14}\n",
                 "collective",
                 "whole KiB",
                 "median us",
                 "GB/s",
                 "bound us",
                 "ratio",
                 "over bound us");
    }
    for (std::int64_t bytes = 64 << 10; bytes <= options_.largest; bytes *= 2) {
      const std::int64_t slice = bytes / 4 / group_.size();
      report("reduce-scatter", bytes, slice * 4 * (group_.size() + 1), roof, [&] {
        reduce_scatter(slice);
      });
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
      const auto start = Clock::now();
      work();
      if (i >= 3) seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    return median(seconds);
  }

  double measure_roof() {
    const std::int64_t quarter = options_.largest / 16;  // elements
    auto* a = reinterpret_cast<float*>(other_.data());
    const double one =
        8.0 * static_cast<double>(4 * quarter) / measure([&] { update_one(a, 4 * quarter); });
    const double three = 24.0 * static_cast<double>(quarter) /
                         measure([&] { update_three(a, a + quarter, a + 2 * quarter, quarter); });
    const double four = 32.0 * static_cast<double>(quarter) / measure([&] {
                          update_four(a, a + quarter, a + 2 * quarter, a + 3 * quarter, quarter);
                        });
    return std::max({one, three, four});
  }

  void reduce_scatter(std::int64_t slice) {
    const ConstView whole = {whole_.data(), slice * group_.size(), DType::kFloat32};
    const ReducePart part = {
        .whole = whole, .slice_count = slice, .sum = {other_.data(), slice, DType::kFloat32}};
    group_.reduce_scatter({&part, 1}, {"bench"}, group_.device().compute()).wait();
  }

  void all_gather(std::int64_t slice) {
    const View whole = {whole_.data(), slice * group_.size(), DType::kFloat32};
    const GatherPart part = {whole.slice(group_.rank() * slice, slice), whole};
    group_.all_gather({&part, 1}, {"bench"}, group_.device().compute()).wait();
  }

  void report(const char* name,
              std::int64_t whole,
              std::int64_t bytes,
              double roof,
              const std::function<void()>& work) {
    const double seconds = measure(work);
    const double bound = static_cast<double>(bytes) / roof;
    if (group_.rank() != 0) return;
    fmt::print("{:<15}{:>12}{:>12.1f}{:>9.1f}{:>12.1f}{:>8.2f}{:>14.1f}\n",
               name,
               whole >> 10,
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

void run_threads(const Options& options) {
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<Device*> pointers;
  for (int r = 0; r < options.threads_as_ranks; ++r) {
    devices.push_back(make_host_device({}));
    pointers.push_back(devices.back().get());
  }
  auto group = make_thread_group(pointers, {});
  std::vector<std::thread> threads;
  threads.reserve(group.size());
  for (auto& rank : group)
    threads.emplace_back([&rank, &options] { Bench(*rank, options).run(); });
  for (std::thread& thread : threads)
    thread.join();
}

}  // namespace

int main(int count, char** arguments) {
  try {
    Options options;
    CLI::App app("Times reduce-scatter and all-gather against the memory's speed.");
    app.add_option(
        "--threads-as-ranks", options.threads_as_ranks, "Ranks, where no launcher started any");
    app.add_option("--repeats", options.repeats, "Measurements of each row");
    app.add_option("--largest", options.largest, "Bytes of the largest tensor");
    CLI11_PARSE(app, count, arguments);
    const LaunchEnvironment environment = LaunchEnvironment::from_environment();
    if (environment.size == 1) {
      run_threads(options);
      return 0;
    }
    const auto device = make_host_device({});
    const auto group = make_process_group(*device, environment, {});
    Bench(*group, options).run();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "collectives_bench: {}\n", error.what());
    return 1;
  }
}
