#include "device/kernels.hpp"
#include "device/thread_pool.hpp"
#include "tests/device/random_values.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <limits>

using namespace sifr;
using namespace sifr::test;

namespace {

// 32 lanes and a halving tree, as kernels.hpp says.
double reference_quantum(const float* values, std::int64_t count) {
  std::array<double, 32> lanes = {};
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(values[i]);
    lanes[static_cast<std::size_t>(i % 32)] += value * value;
  }
  for (std::size_t half = 16; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane)
      lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

ExactSum reference(const std::vector<float>& values) {
  ExactSum sum;
  const auto count = static_cast<std::int64_t>(values.size());
  for (std::int64_t first = 0; first < count; first += 256) {
    sum.add(reference_quantum(values.data() + first, std::min<std::int64_t>(256, count - first)));
  }
  sum.normalise();
  return sum;
}

kernels::SquareSum square_sum(ConstView values, Stream& stream) {
  kernels::SquareSum result;
  kernels::square_sum(values, result, stream);
  stream.synchronize();
  result.sum.normalise();
  return result;
}

}  // namespace

TEST_CASE("a square sum is the exact sum of its quanta's sums", "[device]") {
  ThreadPool pool(3);
  Stream streams[] = {Stream::caller(), Stream::worker("norm", &pool)};
  for (Stream& stream : streams) {
    for (const std::int64_t count : kCounts) {
      const std::vector<float> values = ordinary_values(count, 9);
      const kernels::SquareSum result = square_sum(view_of(values), stream);
      CHECK(result.sum.digits() == reference(values).digits());
      CHECK(result.first_non_finite == -1);
    }
  }
}

TEST_CASE("a square sum over views is that of all, and names the first view that is not finite",
          "[device]") {
  ThreadPool pool(3);
  Stream streams[] = {Stream::caller(), Stream::worker("norm", &pool)};
  std::vector<float> values = ordinary_values(100'000, 10);
  std::vector<ConstView> views;
  for (std::int64_t first = 0; first < 100'000; first += 2560)
    views.push_back(view_of(values).slice(first, std::min<std::int64_t>(2560, 100'000 - first)));
  for (Stream& stream : streams) {
    kernels::SquareSum result;
    kernels::square_sum(views, result, stream);
    stream.synchronize();
    result.sum.normalise();
    CHECK(result.sum.digits() == reference(values).digits());
    CHECK(result.first_non_finite == -1);
  }
  values[8380] = values[51'200] = std::numeric_limits<float>::infinity();  // of views 3 and 20
  for (Stream& stream : streams) {
    kernels::SquareSum result;
    kernels::square_sum(views, result, stream);
    stream.synchronize();
    CHECK(result.first_non_finite == 3);
  }
}

TEST_CASE("square sums of parts add up to the sum of the whole", "[device]") {
  Stream stream = Stream::caller();
  const std::vector<float> values = ordinary_values(100000, 10);
  const ConstView whole = view_of(values);
  kernels::SquareSum parts;
  kernels::square_sum(whole.slice(51200, 48800), parts, stream);
  kernels::square_sum(whole.slice(0, 256), parts, stream);
  kernels::square_sum(whole.slice(256, 50944), parts, stream);
  parts.sum.normalise();
  CHECK(parts.sum.digits() == square_sum(whole, stream).sum.digits());
}

TEST_CASE("a square sum remembers the first quantum that is not finite and leaves it out",
          "[device]") {
  ThreadPool pool(3);
  Stream stream = Stream::caller(&pool);
  std::vector<float> values(200000, 1.0F);
  values[256 * 700 + 3] = std::numeric_limits<float>::quiet_NaN();
  values[256 * 300 + 255] = -std::numeric_limits<float>::infinity();
  const kernels::SquareSum result = square_sum(view_of(values), stream);
  CHECK(result.first_non_finite == 300);
  CHECK(result.sum.value() == 200000 - 2 * 256);
  kernels::SquareSum known{.sum = {}, .first_non_finite = 5};
  kernels::square_sum(view_of(values), known, stream);
  CHECK(known.first_non_finite == 5);
}

TEST_CASE("squares of the largest and smallest fp32 values do not overflow or vanish", "[device]") {
  Stream stream = Stream::caller();
  const std::vector<float> large(256, std::numeric_limits<float>::max());
  const std::vector<float> small(256, std::numeric_limits<float>::denorm_min());
  CHECK(square_sum(view_of(large), stream).sum.value() ==
        256 * std::pow(static_cast<double>(std::numeric_limits<float>::max()), 2));
  CHECK(square_sum(view_of(small), stream).sum.value() == 256 * 0x1p-298);
}

TEST_CASE("a square sum of 16-bit values is a usage error", "[device]") {
  Stream stream = Stream::caller();
  const std::vector<bfloat16> half(10);
  kernels::SquareSum result;
  CHECK_THROWS_AS(kernels::square_sum(view_of(half), result, stream), UsageError);
}
