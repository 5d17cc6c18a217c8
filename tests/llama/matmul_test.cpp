#include "examples/llama/matmul.hpp"

#include "tests/llama/numbers.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace llama::test {
namespace {

template <class T>
std::vector<double> reference(const Product& p, const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<double> c(static_cast<std::size_t>(p.m * p.n));
  const auto at = [](const std::vector<T>& matrix, std::int64_t place) {
    return static_cast<double>(widen(matrix[static_cast<std::size_t>(place)]));
  };
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < p.k; ++k) {
        sum += at(a, p.is_a_transposed ? k * p.m + i : i * p.k + k) *
               at(b, p.is_b_transposed ? j * p.k + k : k * p.n + j);
      }
      c[static_cast<std::size_t>(i * p.n + j)] = sum;
    }
  }
  return c;
}

template <class T, class Out>
void check_product(MatrixProducts& products, const Product& p) {
  const auto a = random_values<T>(p.m * p.k, 1);
  const auto b = random_values<T>(p.k * p.n, 2);
  std::vector<double> expected = reference(p, a, b);
  const auto before = random_values<Out>(p.m * p.n, 3);
  std::vector<Out> c = before;
  products.multiply(p, a.data(), b.data(), c.data());
  for (std::size_t i = 0; p.adds && i < c.size(); ++i)
    expected[i] += static_cast<double>(widen(before[i]));
  INFO(p.m << " x " << p.k << " x " << p.n << " transposed " << p.is_a_transposed
           << p.is_b_transposed);
  CHECK(distance(c, expected) < 30 * kRounding<Out> + 1e-5);
}

/// Whether this run is the one whose environment keeps oneDNN below AVX-512.
bool is_limited() {
  const char* limit = std::getenv("ONEDNN_MAX_CPU_ISA");
  return limit != nullptr && std::string_view(limit) == "AVX2";
}

TEST_CASE("products of every form are those of the definition", "[llama][matmul]") {
  MatrixProducts products(1);
  if (is_limited()) CHECK_FALSE(products.has_bf16());
  for (const Product& size : {Product{.m = 1, .n = 1, .k = 1},
                              Product{.m = 33, .n = 65, .k = 17},
                              Product{.m = 64, .n = 96, .k = 128},
                              Product{.m = 5, .n = 800, .k = 3},
                              Product{.m = 3, .n = 7, .k = 1601},
                              Product{.m = 770, .n = 2, .k = 3}}) {
    for (const bool is_a_transposed : {false, true}) {
      for (const bool is_b_transposed : {false, true}) {
        Product p = size;
        p.is_a_transposed = is_a_transposed;
        p.is_b_transposed = is_b_transposed;
        check_product<float, float>(products, p);
        check_product<sifr::bfloat16, sifr::bfloat16>(products, p);
        check_product<sifr::bfloat16, float>(products, p);
        p.adds = true;
        check_product<float, float>(products, p);
        check_product<sifr::bfloat16, float>(products, p);
      }
    }
  }
}

TEST_CASE("a linear layer's three products fit together", "[llama][matmul]") {
  const Linear layer = {5, 7, 11};
  const Product forward = forward_of(layer);
  CHECK((forward.m == 5 && forward.n == 11 && forward.k == 7 && forward.is_b_transposed));
  const Product input = input_gradient_of(layer, true);
  CHECK((input.m == 5 && input.n == 7 && input.k == 11 && input.adds && !input.is_b_transposed));
  const Product weight = weight_gradient_of(layer);
  CHECK((weight.m == 11 && weight.n == 7 && weight.k == 5 && weight.is_a_transposed));
}

/// The model's kinds of products, on operands that start `shift` elements of 512 bytes in.
std::vector<sifr::bfloat16> some_products(MatrixProducts& products, std::int64_t shift) {
  const Linear layer = {96, 192, 160};
  const auto place = static_cast<std::size_t>(shift * 256);
  std::vector<sifr::bfloat16> a(place);
  std::vector<sifr::bfloat16> b(place);
  for (const auto value : random_values<sifr::bfloat16>(layer.rows * layer.in, 1))
    a.push_back(value);
  for (const auto value : random_values<sifr::bfloat16>(layer.in * layer.out, 2))
    b.push_back(value);
  std::vector<sifr::bfloat16> all;
  for (const Product& p :
       {forward_of(layer), input_gradient_of(layer), weight_gradient_of(layer)}) {
    std::vector<sifr::bfloat16> c(static_cast<std::size_t>(p.m * p.n));
    products.multiply(p, a.data() + place, b.data() + place, c.data());
    all.insert(all.end(), c.begin(), c.end());
  }
  return all;
}

TEST_CASE("the same product gives the same bits again, elsewhere, and beside other ranks",
          "[llama][matmul]") {
  MatrixProducts products(1);
  const auto first = some_products(products, 0);
  CHECK((some_products(products, 0) == first));
  CHECK((some_products(products, 3) == first));
  std::vector<std::vector<sifr::bfloat16>> results(3);
  std::vector<std::thread> ranks;
  ranks.reserve(results.size());
  for (std::vector<sifr::bfloat16>& result : results) {
    ranks.emplace_back([&result] {
      MatrixProducts own(1);
      for (int i = 0; i < 3; ++i)
        result = some_products(own, i);
    });
  }
  for (std::thread& rank : ranks)
    rank.join();
  for (const auto& result : results)
    CHECK((result == first));
}

TEST_CASE("products on two threads give the same bits in every run", "[llama][matmul]") {
  MatrixProducts products(2);
  const auto first = some_products(products, 0);
  for (int i = 0; i < 5; ++i)
    CHECK((some_products(products, i) == first));
}

TEST_CASE("products need a thread", "[llama][matmul]") {
  CHECK_THROWS_WITH(MatrixProducts(0), "matrix products need at least 1 thread, not 0");
}

}  // namespace
}  // namespace llama::test
