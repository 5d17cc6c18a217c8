// How close do the optimizer's kernels come to the memory's own speed?
//
// The roof is the best of three probes that update 1, 3 and 4 arrays in place, on the same threads
// and huge pages. Every round runs each row once, so that a noisy moment meets all of them; a row's
// figure is the median of its rounds, its ratio the median of (its speed / the roof's) within the
// rounds.

#include "device/detail/clones.hpp"
#include "device/device.hpp"
#include "device/kernels.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <vector>

namespace {

using sifr::DType;
using sifr::View;

struct Options {
  std::int64_t elements = 64 << 20;
  int rounds = 15;
  int threads = 2;
};

struct Row {
  std::string name;
  double bytes_per_element;
  std::function<void()> run;
  std::vector<double> speeds = {};  // GB/s, one for each round
};

SIFR_CLONES void update_in_place(float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = values[i] * 0.999F;
}

SIFR_CLONES float read_only(const float* values, std::int64_t count) {
  std::uint32_t bits = 0;
  for (std::int64_t i = 0; i < count; ++i)
    bits |= std::bit_cast<std::uint32_t>(values[i]);
  return std::bit_cast<float>(bits);
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

/// The arrays of an optimizer step and one row for each way to pass over them.
class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options), device_(sifr::make_host_device({.threads = options.threads})) {
    for (View& view : arrays_)
      view = allocate(DType::kFloat32);
    for (View& view : gradients_)
      view = allocate(DType::kBFloat16);
    weight_ = allocate(DType::kBFloat16);
  }

  [[nodiscard]] std::vector<Row> probes() {
    const auto in_pieces = [this](auto work) {
      return [this, work] { device_->pool().parallel_for(options_.elements, kGrain, work); };
    };
    std::array<float*, 4> a = {};
    for (std::size_t i = 0; i < a.size(); ++i)
      a[i] = arrays_[i].as<float>();
    const auto one = [a](std::int64_t first, std::int64_t last) {
      update_in_place(a[0] + first, last - first);
    };
    const auto three = [a](std::int64_t first, std::int64_t last) {
      update_three(a[0] + first, a[1] + first, a[2] + first, last - first);
    };
    const auto four = [a](std::int64_t first, std::int64_t last) {
      update_four(a[0] + first, a[1] + first, a[2] + first, a[3] + first, last - first);
    };
    return {{"probe: 1 array in place", 8, in_pieces(one)},
            {"probe: 3 arrays in place", 24, in_pieces(three)},
            {"probe: 4 arrays in place", 32, in_pieces(four)}};
  }

  [[nodiscard]] std::vector<Row> kernels() {
    using sifr::kernels::Into;
    const sifr::kernels::AdamRun run = {arrays_[0], arrays_[1], arrays_[2], arrays_[3], {}};
    sifr::kernels::AdamRun mixed = run;
    mixed.weight = weight_;
    const auto adam = [this](const sifr::kernels::AdamRun& of) {
      return [this, of] { sifr::kernels::adam(of, kScalars, device_->compute()); };
    };
    const auto sum = [this](const std::array<sifr::ConstView, 2>& inputs, Into into) {
      return [this, inputs, into] {
        sifr::kernels::sum_in_order(inputs, arrays_[2], into, device_->compute());
      };
    };
    const std::array<sifr::ConstView, 2> single = {arrays_[0], arrays_[1]};
    const std::array<sifr::ConstView, 2> half = {gradients_[0], gradients_[1]};
    return {{"adam, fp32 weights", 28, adam(run)},
            {"adam, bf16 weights", 30, adam(mixed)},
            {"sum of 2 fp32, written", 12, sum(single, Into::kWrite)},
            {"sum of 2 fp32, accumulated", 16, sum(single, Into::kAdd)},
            {"sum of 2 bf16, accumulated", 12, sum(half, Into::kAdd)},
            {"read only", 4, [this] { read(); }},
            {"square_sum", 4, [this] { square_sum(); }},
            {"hash", 4, [this] { hash(); }},
            {"cast fp32 to bf16", 6, [this] { cast(); }}};
  }

 private:
  static constexpr std::int64_t kGrain = 32768;
  static constexpr sifr::kernels::AdamScalars kScalars = {.factor = 0.5F,
                                                          .one_minus_beta1 = 0.1F,
                                                          .one_minus_beta2 = 0.001F,
                                                          .step_size = 1e-3F,
                                                          .decay = 0.9999F};

  View allocate(DType dtype) {
    const std::int64_t bytes = options_.elements * size_of(dtype);
    buffers_.push_back(device_->allocate(bytes, sifr::Purpose::kOptimizer));
    return {buffers_.back().data(), options_.elements, dtype};
  }
  void read() {
    const float* const values = arrays_[0].as<float>();
    std::atomic<float> seen = 0;
    device_->pool().parallel_for(
        options_.elements, kGrain, [&](std::int64_t first, std::int64_t last) {
          seen = read_only(values + first, last - first);
        });
  }
  void square_sum() {
    sifr::kernels::SquareSum result;
    sifr::kernels::square_sum(arrays_[0], result, device_->compute());
  }
  void hash() {
    sifr::kernels::Hash128 result;
    sifr::kernels::hash(arrays_[0], 0, 0, result, device_->compute());
  }
  void cast() { sifr::kernels::cast(arrays_[0], weight_, device_->compute()); }

  Options options_;
  std::unique_ptr<sifr::Device> device_;
  std::vector<sifr::Buffer> buffers_;
  std::array<View, 4> arrays_ = {};
  std::array<View, 2> gradients_ = {};
  View weight_ = {};
};

double speed_of(const Row& row, std::int64_t elements) {
  const auto begin = std::chrono::steady_clock::now();
  row.run();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return row.bytes_per_element * static_cast<double>(elements) / seconds.count() / 1e9;
}

void print(const Row& row, const Row& roof) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < row.speeds.size(); ++i)
    ratios.push_back(row.speeds[i] / roof.speeds[i]);
  fmt::print("{:<28} {:>9.0f} {:>9.2f} {:>9.3f}\n",
             row.name,
             row.bytes_per_element,
             median(row.speeds),
             median(ratios));
}

void measure(const Options& options) {
  Bench bench(options);
  std::vector<Row> probes = bench.probes();
  std::vector<Row> kernels = bench.kernels();
  for (int round = -1; round < options.rounds; ++round) {  // round -1 warms up
    for (std::vector<Row>* rows : {&probes, &kernels}) {
      for (Row& row : *rows) {
        const double speed = speed_of(row, options.elements);
        if (round >= 0) row.speeds.push_back(speed);
      }
    }
  }
  const auto is_slower = [](const Row& a, const Row& b) {
    return median(a.speeds) < median(b.speeds);
  };
  const Row& roof = *std::max_element(probes.begin(), probes.end(), is_slower);
  fmt::print(
      "{} elements, {} threads, {} rounds\n", options.elements, options.threads, options.rounds);
  fmt::print("{:<28} {:>9} {:>9} {:>9}\n", "row", "B/element", "GB/s", "of roof");
  for (const std::vector<Row>* rows : {&probes, &kernels}) {
    for (const Row& row : *rows)
      print(row, roof);
  }
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Speed of the optimizer's kernels against the speed of memory");
  app.option_defaults()->always_capture_default();
  app.add_option("--elements", options.elements, "elements of each array")
      ->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds, "rounds that count")->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads, "threads, the caller included")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  measure(options);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
  } catch (...) {
    std::fputs("an unknown error", stderr);
  }
  return 1;
}
