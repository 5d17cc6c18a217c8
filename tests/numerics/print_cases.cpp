// Prints what the kernels compute from random numbers, in and out, as JSON with hexadecimal floats.
// check_exactness.py computes the same with fractions.
#include "device/kernels.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace {

using sifr::ConstView;
using sifr::DType;
using sifr::View;
namespace kernels = sifr::kernels;

std::string hex(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "\"%a\"", value);
  return text.data();
}

template <class Values>
std::string list(const Values& values) {
  std::string text;
  for (const auto& value : values)
    text += (text.empty() ? "[" : ", ") + value;
  return text.empty() ? "[]" : text + "]";
}

std::string list_of(const std::vector<float>& values) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const float value : values)
    texts.push_back(hex(static_cast<double>(value)));
  return list(texts);
}

/// Magnitudes from 2^low to 2^high, both signs.
std::vector<float> random_values(std::mt19937& random, int count, int low, int high) {
  std::uniform_real_distribution<double> fraction(1, 2);
  std::uniform_int_distribution<int> exponent(low, high);
  std::vector<float> values;
  for (int i = 0; i < count; ++i) {
    const double value = std::ldexp(fraction(random), exponent(random));
    values.push_back(static_cast<float>(i % 2 == 0 ? value : -value));
  }
  return values;
}

View view_of(std::vector<float>& values) {
  return {reinterpret_cast<std::byte*>(values.data()),
          static_cast<std::int64_t>(values.size()),
          DType::kFloat32};
}

/// Two micro-batches of a rank-ordered sum, the second accumulated.
void print_ordered_sums(std::mt19937& random, DType dtype, const char* name, sifr::Stream& stream) {
  constexpr int kCount = 200;
  constexpr int kRanks = 3;
  std::vector<float> sum(kCount);
  std::vector<std::string> micro_batches;
  for (const auto into : {kernels::Into::kWrite, kernels::Into::kAdd}) {
    std::vector<std::vector<std::byte>> inputs;
    std::vector<ConstView> views;
    std::vector<std::string> texts;
    for (int rank = 0; rank < kRanks; ++rank) {
      std::vector<float> values = random_values(random, kCount, -12, 12);
      inputs.emplace_back(static_cast<std::size_t>(kCount * size_of(dtype)));
      const View input = {inputs.back().data(), kCount, dtype};
      kernels::cast(view_of(values), input, stream);
      kernels::cast(input, view_of(values), stream);  // what the input holds
      views.push_back(input);
      texts.push_back(list_of(values));
    }
    kernels::sum_in_order(views, view_of(sum), into, stream);
    micro_batches.push_back(list(texts));
  }
  std::printf("\"%s\": {\"inputs\": %s, \"sum\": %s},\n",
              name,
              list(micro_batches).c_str(),
              list_of(sum).c_str());
}

void print_square_sum(
    std::mt19937& random, int low, int high, const char* name, sifr::Stream& stream) {
  std::vector<float> values = random_values(random, 700, low, high);
  kernels::SquareSum squares;
  kernels::square_sum(view_of(values), squares, stream);
  std::printf("\"%s\": {\"values\": %s, \"sum\": %s},\n",
              name,
              list_of(values).c_str(),
              hex(squares.sum.value()).c_str());
}

void print_bf16(std::mt19937& random, sifr::Stream& stream) {
  std::vector<float> values = random_values(random, 300, -149, 126);
  std::vector<float> rounded(values.size());
  std::vector<sifr::bfloat16> narrow(values.size());
  const View view = {reinterpret_cast<std::byte*>(narrow.data()),
                     static_cast<std::int64_t>(narrow.size()),
                     DType::kBFloat16};
  kernels::cast(view_of(values), view, stream);
  kernels::cast(view, view_of(rounded), stream);
  std::printf("\"bf16\": {\"values\": %s, \"rounded\": %s},\n",
              list_of(values).c_str(),
              list_of(rounded).c_str());
}

void print_adam(std::mt19937& random, sifr::Stream& stream) {
  constexpr int kCount = 300;
  std::vector<float> sum = random_values(random, kCount, -20, 3);
  std::vector<float> master = random_values(random, kCount, -8, 1);
  std::vector<float> m = random_values(random, kCount, -20, 0);
  std::vector<float> v = random_values(random, kCount, -40, 0);
  for (float& value : v)
    value = std::abs(value);
  const kernels::AdamScalars scalars = {.factor = 0.3F,
                                        .beta1 = 0.9F,
                                        .one_minus_beta1 = 0.1F,
                                        .beta2 = 0.999F,
                                        .one_minus_beta2 = 0.001F,
                                        .step_size = 0.01F,
                                        .root_correction = 0.7F,
                                        .eps = 1e-8F,
                                        .decay = 0.999F,
                                        .l2 = 0};
  std::printf("\"adam\": {\"sum\": %s, \"before\": [%s, %s, %s], ",
              list_of(sum).c_str(),
              list_of(master).c_str(),
              list_of(m).c_str(),
              list_of(v).c_str());
  std::printf("\"scalars\": %s, ",
              list_of({scalars.factor,
                       scalars.beta1,
                       scalars.one_minus_beta1,
                       scalars.beta2,
                       scalars.one_minus_beta2,
                       scalars.step_size,
                       scalars.root_correction,
                       scalars.eps,
                       scalars.decay})
                  .c_str());
  kernels::adam({.sum = view_of(sum), .master = view_of(master), .m = view_of(m), .v = view_of(v)},
                scalars,
                stream);
  std::printf("\"after\": [%s, %s, %s]}\n",
              list_of(master).c_str(),
              list_of(m).c_str(),
              list_of(v).c_str());
}

}  // namespace

int main() {
  std::mt19937 random(7);
  sifr::Stream stream = sifr::Stream::caller();
  std::printf("{\n");
  print_ordered_sums(random, DType::kFloat32, "fp32", stream);
  print_ordered_sums(random, DType::kBFloat16, "bf16_sums", stream);
  print_square_sum(random, -10, 10, "norm", stream);
  print_square_sum(random, -149, 127, "norm_of_all_magnitudes", stream);
  print_bf16(random, stream);
  print_adam(random, stream);
  std::printf("}\n");
}
