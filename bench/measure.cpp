#include "bench/measure.hpp"

#include "device/detail/cache_lines.hpp"
#include "device/detail/clones.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>

namespace bench {
namespace {

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

SIFR_CLONES void update_three_by_one(
    const float* a, float* b, float* c, float* d, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    b[i] = b[i] * 0.999F + a[i];
    c[i] = c[i] * 0.999F + a[i];
    d[i] = d[i] * 0.999F + a[i];
  }
}

SIFR_CLONES std::uint32_t read_one(const float* a, std::int64_t count) {
  std::uint32_t bits = 0;
  for (std::int64_t i = 0; i < count; ++i)
    bits |= std::bit_cast<std::uint32_t>(a[i]);
  return bits;
}

SIFR_CLONES void add_two(const float* a, const float* b, float* c, std::int64_t count) {
  sifr::detail::write_past_caches(
      c, count, [=](std::int64_t first, std::int64_t length, float* to) SIFR_INLINED {
        for (std::int64_t i = 0; i < length; ++i)
          to[i] = a[first + i] + b[first + i];
      });
}

constexpr Probe kRoofProbes[] = {
    {"1 array in place", 1, 8, [](const Arrays& a, std::int64_t n) { update_one(a[0], n); }},
    {"3 arrays in place",
     3,
     24,
     [](const Arrays& a, std::int64_t n) { update_three(a[0], a[1], a[2], n); }},
    {"4 arrays in place", 4, 32, [](const Arrays& a, std::int64_t n) {
       update_four(a[0], a[1], a[2], a[3], n);
     }}};

constexpr Probe kLimitProbes[] = {
    {"1 array read",
     1,
     4,
     [](const Arrays& a, std::int64_t n) {
       [[maybe_unused]] const volatile std::uint32_t seen = read_one(a[0], n);
     }},
    {"2 arrays read, 1 written",
     3,
     12,
     [](const Arrays& a, std::int64_t n) { add_two(a[0], a[1], a[2], n); }},
    {"1 array read, 3 in place", 4, 28, [](const Arrays& a, std::int64_t n) {
       update_three_by_one(a[0], a[1], a[2], a[3], n);
     }}};

}  // namespace

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<double> ratios(const std::vector<double>& ours, const std::vector<double>& theirs) {
  std::vector<double> result;
  result.reserve(ours.size());
  for (std::size_t i = 0; i < ours.size(); ++i)
    result.push_back(ours[i] / theirs[i]);
  return result;
}

std::span<const Probe> roof_probes() {
  return kRoofProbes;
}

std::span<const Probe> limit_probes() {
  return kLimitProbes;
}

void Row::measure(bool counts) {
  const double speed = bytes_per_element * static_cast<double>(elements) / run() / 1e9;
  if (counts) speeds.push_back(speed);
}

std::vector<Row> probe_rows(std::span<const Probe> probes,
                            const Arrays& arrays,
                            std::int64_t count,
                            sifr::ThreadPool& pool) {
  constexpr std::int64_t kGrain = 32768;
  std::vector<Row> rows;
  for (const Probe& probe : probes) {
    const auto piece = [&probe, arrays](std::int64_t first, std::int64_t last) {
      Arrays at = arrays;
      for (float*& array : at)
        array += first;
      probe.run(at, last - first);
    };
    const auto run = [piece, count, &pool] {
      return seconds_of([&] { pool.parallel_for(count, kGrain, piece); });
    };
    rows.push_back({std::string("probe: ") + probe.name, probe.bytes_per_element, count, run});
  }
  return rows;
}

void print_table(const std::vector<Row>& roofs,
                 const std::vector<const std::vector<Row>*>& others) {
  const auto is_slower = [](const Row& a, const Row& b) {
    return median(a.speeds) < median(b.speeds);
  };
  const Row& roof = *std::max_element(roofs.begin(), roofs.end(), is_slower);
  const auto print = [&](const Row& row) {
    const double bytes = row.bytes_per_element * static_cast<double>(row.elements);
    const double speed = median(row.speeds);
    fmt::print("{:<32} {:>9.0f} {:>9.1f} {:>9.3f} {:>9.2f} {:>9.3f}\n",
               row.name,
               row.bytes_per_element,
               bytes / 1e6,
               bytes / speed / 1e6,
               speed,
               median(ratios(row.speeds, roof.speeds)));
  };
  fmt::print(
      "{:<32} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "row", "B/element", "MB", "ms", "GB/s", "of roof");
  std::for_each(roofs.begin(), roofs.end(), print);
  for (const std::vector<Row>* rows : others)
    std::for_each(rows->begin(), rows->end(), print);
}

int run_program(const Program& program, int count, char** arguments) {
  try {
    CLI::App app(program.about, program.name);
    app.failure_message(CLI::FailureMessage::help);
    app.option_defaults()->always_capture_default();
    program.add_options(app);
    try {
      app.parse(count, arguments);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? 0 : 2;
    }
    program.run();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", program.name, error.what());
    return 1;
  }
}

}  // namespace bench
