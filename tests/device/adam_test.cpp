#include "device/kernels.hpp"
#include "device/thread_pool.hpp"
#include "tests/device/random_values.hpp"
#include "tests/support/reference_adam.hpp"

#include <catch2/catch.hpp>

#include <array>

using namespace sifr;
using namespace sifr::test;
using Catch::Matchers::Contains;

namespace {

/// Adam's state for `count` elements.
struct Arrays {
  std::vector<float> sum, master, m, v;

  static Arrays ordinary(std::int64_t count) {
    Arrays arrays{ordinary_values(count, 1),
                  ordinary_values(count, 2),
                  ordinary_values(count, 3),
                  ordinary_values(count, 4)};
    for (float& value : arrays.v)
      value = value * value;
    return arrays;
  }
  static Arrays any(std::int64_t count) {
    return {any_values(count, 1), any_values(count, 2), any_values(count, 3), any_values(count, 4)};
  }
  kernels::AdamRun run() { return {view_of(sum), view_of(master), view_of(m), view_of(v), {}}; }
  [[nodiscard]] bool equals(const Arrays& other) const {
    return is_same(sum, other.sum) && is_same(master, other.master) && is_same(m, other.m) &&
           is_same(v, other.v);
  }
};

kernels::AdamScalars scalars(float decay, float l2) {
  return {.factor = 0.37F,
          .beta1 = 0.9F,
          .one_minus_beta1 = 0.1F,
          .beta2 = 0.999F,
          .one_minus_beta2 = 0.001F,
          .step_size = 0.0123F,
          .root_correction = 0.0316F,
          .eps = 1e-8F,
          .decay = decay,
          .l2 = l2};
}

Arrays reference(Arrays arrays, const kernels::AdamScalars& s) {
  const ReferenceAdam adam{s.factor,
                           s.beta1,
                           s.one_minus_beta1,
                           s.beta2,
                           s.one_minus_beta2,
                           s.step_size,
                           s.root_correction,
                           s.eps,
                           s.decay,
                           s.l2};
  for (std::size_t i = 0; i < arrays.sum.size(); ++i) {
    adam.update(arrays.sum[i], arrays.master[i], arrays.m[i], arrays.v[i]);
  }
  return arrays;
}

}  // namespace

TEST_CASE("adam has the bits of its written order", "[device]") {
  ThreadPool pool(2);
  Stream streams[] = {Stream::caller(), Stream::worker("adam", &pool)};
  for (Stream& stream : streams) {
    for (const std::int64_t count : kCounts) {
      for (const kernels::AdamScalars& s : {scalars(1, 0), scalars(0.999F, 0), scalars(1, 0.01F)}) {
        Arrays ordinary = Arrays::ordinary(count);
        Arrays any = Arrays::any(count);
        const Arrays expected_ordinary = reference(ordinary, s);
        const Arrays expected_any = reference(any, s);
        kernels::adam(ordinary.run(), s, stream);
        kernels::adam(any.run(), s, stream);
        stream.synchronize();
        CHECK(ordinary.equals(expected_ordinary));
        CHECK(any.equals(expected_any));
      }
    }
  }
}

TEST_CASE("adam writes every weight as the rounded master, around vectors and pieces",
          "[device][OPT03]") {
  ThreadPool pool(2);
  Stream stream = Stream::caller(&pool);
  for (const std::int64_t count : {1, 3, 5, 15, 16, 17, 35, 32767, 32768, 32769, 65539}) {
    Arrays arrays = Arrays::any(count);
    std::vector<bfloat16> brain(arrays.sum.size());
    kernels::AdamRun run = arrays.run();
    run.weight = view_of(brain);
    kernels::adam(run, scalars(0.999F, 0), stream);
    CHECK(brain == narrow<bfloat16>(arrays.master));
    std::vector<bfloat16> odd(arrays.sum.size() + 2, to_bfloat16(7));  // at an odd address
    run.weight = view_of(odd).slice(1, count);
    kernels::adam(run, scalars(0.999F, 0), stream);
    CHECK((odd.front() == to_bfloat16(7) && odd.back() == to_bfloat16(7)));
    CHECK(std::vector(odd.begin() + 1, odd.end() - 1) == narrow<bfloat16>(arrays.master));
    std::vector<float16> half(arrays.sum.size());
    run.weight = view_of(half);
    kernels::adam(run, scalars(1, 0.1F), stream);
    CHECK(half == narrow<float16>(arrays.master));
    std::vector<float> single(arrays.sum.size());
    run.weight = view_of(single);
    kernels::adam(run, scalars(1, 0), stream);
    CHECK(is_same(single, arrays.master));
  }
}

TEST_CASE("decoupled decay acts on the weight before the update", "[device][OPT06]") {
  Stream stream = Stream::caller();
  for (const std::int64_t count : {1, 100}) {  // scalar and vector code
    std::vector<float> sum(static_cast<std::size_t>(count), 1);
    std::vector<float> master = sum;
    std::vector<float> m(sum.size());
    std::vector<float> v(sum.size());
    // First update of w = 1, g = 1, lr = 0.1, wd = 0.1: 1 · (1 − 0.01) − 0.1 · 1; the wrong order
    // gives 0.891.
    const kernels::AdamScalars first = {.one_minus_beta1 = 0.1F,
                                        .one_minus_beta2 = 0.001F,
                                        .step_size = 0.1F / 0.1F,
                                        .root_correction = std::sqrt(0.001F),
                                        .decay = 0.99F};
    kernels::adam({view_of(sum), view_of(master), view_of(m), view_of(v), {}}, first, stream);
    for (const float weight : master)
      CHECK(weight == Approx(0.89).margin(1e-6));
  }
}

TEST_CASE("adam gives the same bits however its run is cut", "[device]") {
  Stream stream = Stream::caller();
  Arrays whole = Arrays::ordinary(3000);
  Arrays cut = whole;
  kernels::adam(whole.run(), scalars(0.999F, 0), stream);
  for (const auto& [first, length] : {std::pair{0, 1}, {1, 998}, {999, 2001}}) {
    const kernels::AdamRun run = cut.run();
    kernels::adam({run.sum.slice(first, length),
                   run.master.slice(first, length),
                   run.m.slice(first, length),
                   run.v.slice(first, length),
                   {}},
                  scalars(0.999F, 0),
                  stream);
  }
  CHECK(cut.equals(whole));
}

TEST_CASE("adam over pieces has each run's bits with its group's scalars", "[device]") {
  ThreadPool pool(3);
  Stream streams[] = {Stream::caller(), Stream::worker("adam", &pool)};
  const std::array<kernels::AdamScalars, 2> groups = {scalars(0.999F, 0), scalars(1, 0.01F)};
  for (Stream& stream : streams) {
    std::vector<Arrays> arrays;
    std::vector<Arrays> expected;
    std::vector<kernels::AdamPiece> pieces;
    for (const std::int64_t count : kCounts)
      arrays.push_back(Arrays::any(count));
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      expected.push_back(reference(arrays[i], groups[i % 2]));
      pieces.push_back({.run = arrays[i].run(), .group = i % 2});
    }
    kernels::adam(pieces, groups, stream);
    stream.synchronize();
    for (std::size_t i = 0; i < arrays.size(); ++i)
      CHECK(arrays[i].equals(expected[i]));
  }
  Stream stream = Stream::caller();
  Arrays arrays = Arrays::any(3);
  const kernels::AdamPiece piece = {.run = arrays.run(), .group = 2};
  CHECK_THROWS_WITH(kernels::adam({&piece, 1}, groups, stream),
                    Contains("a piece is of group 2, there are 2"));
}

TEST_CASE("adam names the view that does not match", "[device]") {
  Stream stream = Stream::caller();
  Arrays arrays = Arrays::ordinary(10);
  std::vector<float> nine(9);
  std::vector<bfloat16> half(10);
  kernels::AdamRun run = arrays.run();
  run.v = view_of(nine);
  CHECK_THROWS_WITH(kernels::adam(run, {}, stream), Contains("adam: v has 9 elements, needs 10"));
  run = arrays.run();
  run.m = view_of(half);
  CHECK_THROWS_WITH(kernels::adam(run, {}, stream), Contains("adam: m is bf16, needs fp32"));
  run = arrays.run();
  run.weight = view_of(nine);
  CHECK_THROWS_WITH(kernels::adam(run, {}, stream), Contains("weight has 9"));
  CHECK_THROWS_WITH(kernels::adam(arrays.run(), scalars(0.9F, 0.1F), stream),
                    Contains("either decoupled or L2"));
}
