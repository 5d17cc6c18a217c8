#include "device/exact_sum.hpp"

#include "tests/support/python.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <vector>

using namespace sifr;

namespace {

ExactSum sum_of(const std::vector<double>& values) {
  ExactSum sum;
  for (const double value : values)
    sum.add(value);
  return sum;
}

std::uint64_t bits_of(double value) {
  return std::bit_cast<std::uint64_t>(value);
}

// Finite doubles with any bits.
std::vector<double> random_doubles(std::mt19937_64& random, std::size_t count) {
  std::vector<double> values;
  while (values.size() < count) {
    const auto value = std::bit_cast<double>(random());
    if (std::isfinite(value)) values.push_back(value);
  }
  return values;
}

// Series of values whose sums round in every way: any exponent, near each other, cancelling,
// denormal, overflowing.
std::vector<std::vector<double>> cases() {
  std::mt19937_64 random(7);
  constexpr double kMax = std::numeric_limits<double>::max();
  std::vector<std::vector<double>> all = {{},
                                          {0.0, -0.0},
                                          {1.0, 0x1p-53},
                                          {1.0, 0x1p-53, 0x1p-1074},
                                          {1.0, 0x1p-52, 0x1p-53},
                                          {-1.0, -0x1p-53, -0x1p-1000},
                                          {kMax, kMax},
                                          {kMax, 0x1p+970},
                                          {kMax, 0x1p+969},
                                          {-kMax, -kMax, 1.0},
                                          {kMax, kMax, -kMax, -kMax, 3.0},
                                          {0x1p-1074, 0x1p-1074, 0x1p-1074},
                                          {0x1p-1022, -0x1p-1074}};
  for (std::size_t count = 1; count < 200; ++count)
    all.push_back(random_doubles(random, count));
  for (int i = 0; i < 100; ++i) {
    std::vector<double> near;
    near.reserve(51);
    for (int k = 0; k < 50; ++k) {
      near.push_back(std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())),
                                -static_cast<int>(random() % 120)));
    }
    all.push_back(near);
    near.push_back(-sum_of(near).value());
    all.push_back(near);
  }
  return all;
}

}  // namespace

TEST_CASE("an exact sum is the nearest double of the rational sum", "[device]") {
  if (std::string(SIFR_PYTHON).empty()) {
    WARN("[skipped] python3 is missing");
    return;
  }
  const TemporaryFolder folder;
  const auto path = folder.path() / "values";
  {
    std::ofstream file(path);
    for (const std::vector<double>& values : cases()) {
      for (const double value : values)
        file << fmt::format("{:016x} ", bits_of(value));
      file << '\n';
    }
  }
  std::string expected;
  for (const std::vector<double>& values : cases()) {
    expected += fmt::format("{:016x}\n", bits_of(sum_of(values).value()));
  }
  CHECK(test::run_python(SIFR_PYTHON, SIFR_TEST_DIR "/exact_sum.py", path.string()) == expected);
}

TEST_CASE("equal sums have equal digits in any order and grouping", "[device]") {
  std::mt19937_64 random(3);
  std::vector<double> values = random_doubles(random, 1000);
  ExactSum whole = sum_of(values);
  whole.normalise();
  std::shuffle(values.begin(), values.end(), random);
  ExactSum grouped;
  for (std::size_t first = 0; first < values.size(); first += 77) {
    ExactSum part;
    for (std::size_t i = first; i < std::min(first + 77, values.size()); ++i)
      part.add(values[i]);
    grouped.add(part);
  }
  grouped.normalise();
  CHECK(grouped.digits() == whole.digits());
}

TEST_CASE("digits of several ranks add as integers", "[device]") {
  ExactSum::Digits digits = {};
  double expected = 0;
  for (int rank = 0; rank < 5; ++rank) {
    ExactSum sum;
    sum.add(std::ldexp(rank % 2 == 0 ? 3 : -1, rank * 7));
    expected += std::ldexp(rank % 2 == 0 ? 3 : -1, rank * 7);
    sum.normalise();
    for (std::size_t i = 0; i < digits.size(); ++i)
      digits[i] += sum.digits()[i];
  }
  CHECK(ExactSum(digits).value() == expected);
}

TEST_CASE("an exact sum ignores what is not finite", "[device]") {
  ExactSum sum;
  sum.add(2.5);
  sum.add(std::numeric_limits<double>::infinity());
  sum.add(std::numeric_limits<double>::quiet_NaN());
  CHECK(sum.value() == 2.5);
}

TEST_CASE("normalised digits are unsigned 32-bit values but the last, which carries the sign",
          "[device]") {
  ExactSum sum;
  sum.add(-1.0);
  sum.normalise();
  for (std::size_t i = 0; i + 1 < ExactSum::kDigits; ++i) {
    const std::int64_t digit = sum.digits()[i];
    if (digit < 0 || digit >= std::int64_t{1} << 32) FAIL("digit " << i << " is " << digit);
  }
  CHECK(sum.digits().back() == -1);
  CHECK(sum.value() == -1.0);
}
