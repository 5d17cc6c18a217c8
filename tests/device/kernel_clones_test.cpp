#include "device/detail/host_loops.hpp"
#include "tests/device/kernel_variants.hpp"
#include "tests/device/random_values.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <functional>

using namespace sifr;
using namespace sifr::test;

namespace {

constexpr std::int64_t kCount = 20011;

using Result = std::vector<std::vector<float>>;

/// Runs `compute` for every level that this machine has; all must agree with the plainest.
void check_variants(const std::function<Result(const KernelVariant&)>& compute,
                    const Result& of_library) {
  const std::vector<KernelVariant> variants = kernel_variants();
  const Result expected = compute(variants[0]);
  const auto check = [&](const Result& result, const char* name) {
    INFO("level " << name);
    REQUIRE(result.size() == expected.size());
    for (std::size_t i = 0; i < result.size(); ++i)
      CHECK(is_same(result[i], expected[i]));
  };
  for (const KernelVariant& variant : variants) {
    if (variant.is_supported) {
      check(compute(variant), variant.name);
    } else {
      WARN("this machine has no " << variant.name);
    }
  }
  check(of_library, "of the library");
}

template <class T>
std::vector<float> widen(const std::vector<T>& values) {
  std::vector<float> wide;
  wide.reserve(values.size());
  for (const T value : values)
    wide.push_back(to_float(value));
  return wide;
}

template <class Cast>
Result cast_all(const Cast& cast, const std::vector<float>& input) {
  std::vector<bfloat16> brain(input.size());
  std::vector<float16> half(input.size());
  std::vector<float> back(input.size());
  cast(view_of(input), view_of(brain));
  cast(view_of(input), view_of(half));
  cast(view_of(std::as_const(half)), view_of(back));
  return {widen(brain), widen(half), back};
}

template <class Adam>
Result adam_all(const Adam& adam,
                const std::vector<std::vector<float>>& input,
                const kernels::AdamScalars& scalars) {
  Result state = {input[1], input[2], input[3]};
  std::vector<bfloat16> weight(input[0].size());
  adam(
      {view_of(input[0]), view_of(state[0]), view_of(state[1]), view_of(state[2]), view_of(weight)},
      scalars);
  state.push_back(widen(weight));
  return state;
}

template <class Sum>
Result sum_all(const Sum& sum, const std::vector<std::vector<float>>& input) {
  std::vector<float> written(input[0].size() - 3);
  std::vector<float> past(written.size());
  std::vector<float> added(input[3].begin() + 3, input[3].end());
  const std::vector<ConstView> views = {view_of(input[0]), view_of(input[1]), view_of(input[2])};
  sum(views, 3, view_of(written), kernels::Into::kWrite);
  sum(views, 3, view_of(past), kernels::Into::kWritePastCaches);
  sum(views, 3, view_of(added), kernels::Into::kAdd);
  return {written, past, added};
}

std::vector<std::vector<float>> inputs(std::vector<float> (*make)(std::int64_t, std::uint32_t)) {
  return {make(kCount, 1), make(kCount, 2), make(kCount, 3), make(kCount, 4)};
}

}  // namespace

TEST_CASE("casts have the same bits at every vector level", "[device]") {
  const std::vector<float> input = any_values(kCount, 1);
  check_variants([&](const KernelVariant& variant) { return cast_all(variant.cast, input); },
                 cast_all(detail::host::cast, input));
}

TEST_CASE("scale has the same bits at every vector level", "[device]") {
  const std::vector<float> input = any_values(kCount, 1);
  const auto scale = [&](const auto& kernel) {
    Result result = {input};
    kernel(view_of(result[0]), 0.7F);
    return result;
  };
  check_variants([&](const KernelVariant& variant) { return scale(variant.scale); },
                 scale(detail::host::scale));
}

TEST_CASE("ordered sums have the same bits at every vector level", "[device]") {
  for (const auto make : {ordinary_values, any_values}) {
    const auto input = inputs(make);
    check_variants(
        [&](const KernelVariant& variant) { return sum_all(variant.sum_in_order, input); },
        sum_all(detail::host::sum_in_order, input));
  }
}

TEST_CASE("adam has the same bits at every vector level", "[device]") {
  const kernels::AdamScalars decoupled = {.factor = 0.37F,
                                          .one_minus_beta1 = 0.1F,
                                          .one_minus_beta2 = 0.001F,
                                          .step_size = 0.01F,
                                          .root_correction = 0.03F,
                                          .decay = 0.999F};
  const kernels::AdamScalars l2 = {.factor = 1.7F,
                                   .one_minus_beta1 = 0.1F,
                                   .one_minus_beta2 = 0.001F,
                                   .step_size = 0.01F,
                                   .root_correction = 0.5F,
                                   .l2 = 0.01F};
  for (const auto make : {ordinary_values, any_values}) {
    for (const kernels::AdamScalars& scalars : {decoupled, l2}) {
      const auto input = inputs(make);
      check_variants(
          [&](const KernelVariant& variant) { return adam_all(variant.adam, input, scalars); },
          adam_all(detail::host::adam, input, scalars));
    }
  }
}

TEST_CASE("square sums have the same bits at every vector level", "[device]") {
  const std::vector<KernelVariant> variants = kernel_variants();
  for (const auto make : {ordinary_values, any_values}) {
    const std::vector<float> input = make(kCount, 5);
    const std::size_t quanta = (kCount + 255) / 256;
    std::vector<double> expected(quanta);
    variants[0].square_sums(input.data(), kCount, expected.data());
    for (const KernelVariant& variant : variants) {
      if (!variant.is_supported) continue;
      std::vector<double> sums(quanta);
      variant.square_sums(input.data(), kCount, sums.data());
      int failures = 0;
      for (std::size_t i = 0; i < quanta; ++i) {
        const bool is_equal = std::memcmp(&sums[i], &expected[i], sizeof(double)) == 0;
        failures += is_equal || (std::isnan(sums[i]) && std::isnan(expected[i])) ? 0 : 1;
      }
      INFO(variant.name);
      CHECK(failures == 0);
    }
  }
}

TEST_CASE("hashes are the same at every vector level", "[device]") {
  const std::vector<float> single = any_values(kCount, 6);
  const std::vector<bfloat16> half = narrow<bfloat16>(single);
  const std::vector<KernelVariant> variants = kernel_variants();
  for (const ConstView view : {ConstView(view_of(single)), ConstView(view_of(half))}) {
    kernels::Hash128 of_library;
    detail::host::hash(view, 3, 512, of_library);
    for (const KernelVariant& variant : variants) {
      if (variant.is_supported) CHECK(variant.hash(view, 3, 512) == of_library);
    }
  }
}
