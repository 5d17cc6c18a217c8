#include "device/kernels.hpp"

#include "device/detail/float_environment.hpp"
#include "device/thread_pool.hpp"
#include "tests/device/random_values.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cstring>
#include <limits>

using namespace sifr;
using namespace sifr::test;
using Catch::Matchers::Contains;

namespace {

template <class To>
void check_narrowing(Stream& stream) {
  for (const std::int64_t count : kCounts) {
    const std::vector<float> from = any_values(count, 1);
    std::vector<To> to(from.size());
    kernels::cast(view_of(from), view_of(to), stream);
    std::vector<float> back(from.size());
    kernels::cast(view_of(std::as_const(to)), view_of(back), stream);
    stream.synchronize();
    const std::vector<To> expected = narrow<To>(from);
    int failures = 0;
    for (std::size_t i = 0; i < to.size(); ++i) {
      failures += to[i] == expected[i] ? 0 : 1;
      failures += is_same(back[i], to_float(expected[i])) ? 0 : 1;
    }
    CHECK(failures == 0);
  }
}

template <class T>
std::vector<float> reference_sum(const std::vector<std::vector<T>>& inputs,
                                 const std::vector<float>* before) {
  std::vector<float> sums;
  sums.reserve(inputs[0].size());
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    const auto value = [&](std::size_t r) {
      if constexpr (std::is_same_v<T, float>) return inputs[r][i];
      if constexpr (!std::is_same_v<T, float>) return to_float(inputs[r][i]);
    };
    float sum = value(0);
    for (std::size_t r = 1; r < inputs.size(); ++r)
      sum = sum + value(r);
    sums.push_back(before == nullptr ? sum : (*before)[i] + sum);
  }
  return sums;
}

template <class T>
void check_sums(Stream& stream) {
  for (const std::int64_t count : kCounts) {
    for (const std::size_t ranks : {1, 2, 3, 5}) {
      std::vector<std::vector<T>> inputs;
      inputs.reserve(ranks);
      for (std::size_t r = 0; r < ranks; ++r) {
        inputs.push_back(narrow<T>(any_values(count, static_cast<std::uint32_t>(r))));
      }
      std::vector<ConstView> views;
      views.reserve(ranks);
      for (const std::vector<T>& input : inputs)
        views.push_back(view_of(input));
      const std::vector<float> before = any_values(count, 99);
      std::vector<float> written(before.size());
      std::vector<float> added = before;
      std::vector<float> past(before.size() + 2, 7);
      kernels::sum_in_order(views, view_of(written), kernels::Into::kWrite, stream);
      kernels::sum_in_order(
          views, view_of(past).slice(1, count), kernels::Into::kWritePastCaches, stream);
      kernels::sum_in_order(views, view_of(added), kernels::Into::kAdd, stream);
      stream.synchronize();
      CHECK(is_same(written, reference_sum<T>(inputs, nullptr)));
      CHECK((past.front() == 7 && past.back() == 7));
      CHECK(is_same({past.begin() + 1, past.end() - 1}, written));
      CHECK(is_same(added, reference_sum<T>(inputs, &before)));
    }
  }
}

}  // namespace

TEST_CASE("cast rounds as the conversions of one value do", "[device]") {
  Stream stream = Stream::caller();
  check_narrowing<bfloat16>(stream);
  check_narrowing<float16>(stream);
}

TEST_CASE("cast runs on workers with helpers", "[device]") {
  ThreadPool pool(3);
  Stream stream = Stream::worker("cast", &pool);
  check_narrowing<bfloat16>(stream);
}

TEST_CASE("cast between equal dtypes copies bits, onto the same memory too", "[device]") {
  Stream stream = Stream::caller();
  const std::vector<float> from = any_values(1000, 2);
  std::vector<float> to(from.size());
  kernels::cast(view_of(from), view_of(to), stream);
  kernels::cast(view_of(to), view_of(to), stream);
  CHECK(std::memcmp(from.data(), to.data(), 4 * from.size()) == 0);
}

TEST_CASE("narrowing in place leaves the rounded values at the view's start", "[device]") {
  Stream stream = Stream::caller();
  for (const std::int64_t count : kCounts) {
    const std::vector<float> before = any_values(count, 8);
    std::vector<float> values = before;
    kernels::narrow_in_place(view_of(values), DType::kBFloat16, stream);
    const std::vector<bfloat16> expected = narrow<bfloat16>(before);
    const std::size_t bytes = 2 * expected.size();
    CHECK((bytes == 0 || std::memcmp(values.data(), expected.data(), bytes) == 0));
  }
  std::vector<float> values(10);
  CHECK_THROWS_AS(kernels::narrow_in_place(view_of(values), DType::kFloat32, stream), UsageError);
}

TEST_CASE("scale rounds once in the view's dtype", "[device]") {
  Stream stream = Stream::caller();
  const std::vector<float> from = any_values(5000, 3);
  std::vector<float> single = from;
  std::vector<bfloat16> half = narrow<bfloat16>(from);
  const std::vector<bfloat16> before = half;
  kernels::scale(view_of(single), 0.3F, stream);
  kernels::scale(view_of(half), 0.3F, stream);
  int failures = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    failures += is_same(single[i], from[i] * 0.3F) ? 0 : 1;
    failures += half[i] == to_bfloat16(to_float(before[i]) * 0.3F) ? 0 : 1;
  }
  CHECK(failures == 0);
}

TEST_CASE("sums over ranks are added in rank order in fp32", "[device]") {
  Stream stream = Stream::caller();
  check_sums<float>(stream);
  check_sums<bfloat16>(stream);
  check_sums<float16>(stream);
}

TEST_CASE("sums over ranks give the same bits on helpers", "[device]") {
  ThreadPool pool(3);
  Stream stream = Stream::worker("sum", &pool);
  check_sums<float>(stream);
}

TEST_CASE("one input keeps its negative zeros", "[device]") {
  Stream stream = Stream::caller();
  const std::vector<float> input(300, -0.0F);
  std::vector<float> sum(300, 1.0F);
  const std::array<ConstView, 1> views = {view_of(input)};
  kernels::sum_in_order(views, view_of(sum), kernels::Into::kWrite, stream);
  CHECK(is_same(sum, input));
}

TEST_CASE("a sum may be one of its inputs", "[device]") {
  Stream stream = Stream::caller();
  const std::vector<float> first = ordinary_values(5000, 4);
  std::vector<float> sum = ordinary_values(5000, 5);
  const std::vector<float> expected = reference_sum<float>({first, sum}, nullptr);
  std::vector<float> past = sum;
  const std::array<ConstView, 2> views = {view_of(first), view_of(sum)};
  kernels::sum_in_order(views, view_of(sum), kernels::Into::kWrite, stream);
  CHECK(is_same(sum, expected));
  const std::array<ConstView, 2> past_views = {view_of(first), view_of(past)};
  kernels::sum_in_order(past_views, view_of(past), kernels::Into::kWritePastCaches, stream);
  CHECK(is_same(past, expected));
}

TEST_CASE("poison leaves a NaN in every element of every dtype", "[device]") {
  Stream stream = Stream::caller();
  std::vector<float> single(1001);
  std::vector<bfloat16> brain(1001);
  std::vector<float16> half(1001);
  kernels::poison(view_of(single), stream);
  kernels::poison(view_of(brain), stream);
  kernels::poison(view_of(half), stream);
  int failures = 0;
  for (std::size_t i = 0; i < single.size(); ++i) {
    failures +=
        std::isnan(single[i]) && std::isnan(to_float(brain[i])) && std::isnan(to_float(half[i]))
            ? 0
            : 1;
  }
  CHECK(failures == 0);
  kernels::fill_zero(view_of(single), stream);
  CHECK(is_same(single, std::vector<float>(1001)));
}

TEST_CASE("kernels keep denormals where the program flushes them, and leave its mode alone",
          "[device]") {
  ThreadPool pool(2);
  Stream stream = Stream::caller(&pool);
  std::vector<float> values(100000, std::numeric_limits<float>::denorm_min() * 4);
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // flush to zero, denormals are zero
  const unsigned flushing = _mm_getcsr();
  kernels::scale(view_of(values), 0.5F, stream);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  CHECK(after == flushing);
  CHECK(is_same(values, std::vector<float>(100000, std::numeric_limits<float>::denorm_min() * 2)));
}

TEST_CASE("kernels name what does not match, with both numbers", "[device]") {
  Stream stream = Stream::caller();
  std::vector<float> ten(10);
  std::vector<float> twelve(12);
  std::vector<bfloat16> half(10);
  CHECK_THROWS_WITH(kernels::cast(view_of(ten), view_of(twelve), stream),
                    Contains("cast") && Contains("12") && Contains("10"));
  const std::vector<ConstView> mixed = {view_of(ten), view_of(half)};
  CHECK_THROWS_WITH(kernels::sum_in_order(mixed, view_of(ten), kernels::Into::kWrite, stream),
                    Contains("fp32") && Contains("bf16"));
  CHECK_THROWS_AS(kernels::sum_in_order({}, view_of(ten), kernels::Into::kWrite, stream),
                  UsageError);
  const std::vector<ConstView> one = {view_of(ten)};
  CHECK_THROWS_WITH(kernels::sum_in_order(one, view_of(twelve), kernels::Into::kWrite, stream),
                    Contains("12") && Contains("10"));
  CHECK_THROWS_WITH(kernels::sum_in_order(one, view_of(half), kernels::Into::kWrite, stream),
                    Contains("needs fp32"));
  CHECK_THROWS_AS(kernels::fill_zero({nullptr, 5, DType::kFloat32}, stream), UsageError);
  CHECK_THROWS_AS(kernels::scale({nullptr, -1, DType::kFloat32}, 1, stream), UsageError);
  CHECK_NOTHROW(stream.synchronize());  // a wrong call leaves the stream usable
}
