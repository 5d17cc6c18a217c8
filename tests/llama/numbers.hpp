#pragma once

// Random numbers and distances for the tests of loops: references compute in double on the very
// values that the loops read, and the loops may differ by the rounding of their storage.
#include "examples/llama/element.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <type_traits>
#include <vector>

namespace llama::test {

template <class T>
std::vector<T> random_values(std::int64_t count, unsigned seed, double deviation = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, deviation);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values)
    value = narrow<T>(static_cast<float>(normal(random)));
  return values;
}

template <class T>
std::vector<double> doubles(const std::vector<T>& values) {
  std::vector<double> wide;
  wide.reserve(values.size());
  for (const T value : values)
    wide.push_back(static_cast<double>(widen(value)));
  return wide;
}

/// One rounding of T, relative.
template <class T>
inline constexpr double kRounding = std::is_same_v<T, float> ? 6e-8 : 4e-3;

/// The largest |ours − reference|, in units of the reference's root mean square, or of 0.1 where
/// that is smaller.
template <class T>
double distance(const std::vector<T>& ours, const std::vector<double>& reference) {
  double squares = 0;
  double largest = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    squares += reference[i] * reference[i];
    const double error = std::abs(static_cast<double>(widen(ours[i])) - reference[i]);
    largest = error > largest || std::isnan(error) ? error : largest;
  }
  return largest / std::max(0.1, std::sqrt(squares / static_cast<double>(reference.size())));
}

/// d f / d x[i] by central differences, x restored.
inline double derivative(const std::function<double()>& f, double& x, double step = 1e-5) {
  const double kept = x;
  x = kept + step;
  const double above = f();
  x = kept - step;
  const double below = f();
  x = kept;
  return (above - below) / (2 * step);
}

/// All of them.
inline std::vector<double> derivatives(const std::function<double()>& f, std::vector<double>& x) {
  std::vector<double> all;
  all.reserve(x.size());
  for (double& value : x)
    all.push_back(derivative(f, value));
  return all;
}

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

}  // namespace llama::test
