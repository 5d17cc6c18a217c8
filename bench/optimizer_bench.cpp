// How close do the optimizer's kernels come to the memory's own speed?
//
// The roof is the best of three probes that update 1, 3 and 4 arrays in place, on the same threads
// and huge pages. Every round runs each row once, so that a noisy moment meets all of them; a row's
// figure is the median of its rounds, its ratio the median of (its speed / the roof's) within the
// rounds.

#include "bench/measure.hpp"
#include "device/device.hpp"
#include "device/kernels.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace {

using bench::Row;
using sifr::DType;
using sifr::View;

struct Options {
  std::int64_t elements = 64 << 20;
  int rounds = 15;
  int threads = 2;
};

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

  [[nodiscard]] std::vector<Row> rows_of(std::span<const bench::Probe> probes) {
    bench::Arrays arrays = {};
    for (std::size_t i = 0; i < arrays.size(); ++i)
      arrays[i] = arrays_[i].as<float>();
    return bench::probe_rows(probes, arrays, options_.elements, device_->pool());
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
    return {row("adam, fp32 weights", 28, adam(run)),
            row("adam, bf16 weights", 30, adam(mixed)),
            row("sum of 2 fp32, written", 12, sum(single, Into::kWrite)),
            row("sum of 2 fp32, past the caches", 12, sum(single, Into::kWritePastCaches)),
            row("sum of 2 fp32, accumulated", 16, sum(single, Into::kAdd)),
            row("sum of 2 bf16, accumulated", 12, sum(half, Into::kAdd)),
            row("square_sum", 4, [this] { square_sum(); }),
            row("hash", 4, [this] { hash(); }),
            row("cast fp32 to bf16", 6, [this] { cast(); })};
  }

 private:
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
  template <class F>
  Row row(const char* name, double bytes_per_element, const F& work) {
    return {name, bytes_per_element, options_.elements, [work] { return bench::seconds_of(work); }};
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

void measure(const Options& options) {
  Bench bench(options);
  std::vector<Row> roofs = bench.rows_of(bench::roof_probes());
  std::vector<Row> limits = bench.rows_of(bench::limit_probes());
  std::vector<Row> kernels = bench.kernels();
  for (int round = -1; round < options.rounds; ++round) {  // round -1 warms up
    for (std::vector<Row>* rows : {&roofs, &limits, &kernels}) {
      for (Row& row : *rows)
        row.measure(round >= 0);
    }
  }
  fmt::print(
      "{} elements, {} threads, {} rounds\n", options.elements, options.threads, options.rounds);
  bench::print_table(roofs, {&limits, &kernels});
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--elements", options.elements, "elements of each array")
      ->check(CLI::Range(std::int64_t{1}, bench::kMostElements));
  app.add_option("--rounds", options.rounds, "rounds that count")
      ->check(CLI::Range(1, bench::kMostRounds));
  app.add_option("--threads", options.threads, "threads, the caller included")
      ->check(CLI::Range(1, bench::kMostThreads));
}

}  // namespace

int main(int count, char** arguments) {
  Options options;
  return bench::run_program(
      {.name = "optimizer_bench",
       .about = "Speed of the optimizer's kernels against the speed of memory",
       .add_options = [&](CLI::App& app) { add_options(app, options); },
       .run = [&] { measure(options); }},
      count,
      arguments);
}
