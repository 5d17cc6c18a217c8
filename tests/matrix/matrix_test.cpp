// The matrix: whatever a configuration says of stage, buckets, prefetch, chunks, window, overlap
// and placement, the weights after some steps are the same bits.
#include "tests/matrix/same_bits.hpp"

#include <catch2/catch.hpp>

#include <iostream>

namespace sifr::test {
namespace {

void check_all(const std::string& model, const std::string& dtype) {
  Coverage coverage;
  for (const int ranks : {1, 2, 3, 4}) {
    for (const int accumulation : {1, 3}) {
      for (const char* reduce_at : {"micro_batch", "boundary"}) {
        coverage += check_same_bits({model, dtype, ranks, accumulation, reduce_at});
      }
    }
  }
  std::cout << "[matrix] " << model << " in " << dtype << ", " << coverage.text() << '\n';
}

TEST_CASE("no setting changes a bit of an odd model in fp32", "[matrix][ST301][ST312][ST315]") {
  check_all("odd", "fp32");
}
TEST_CASE("no setting changes a bit of an odd model in bf16", "[matrix][ST301][ST312][ST315]") {
  check_all("odd", "bf16");
}
TEST_CASE("no setting changes a bit of a tied Llama in fp32", "[matrix][ST312][ST315]") {
  check_all("tied", "fp32");
}
TEST_CASE("no setting changes a bit of a tied Llama in bf16", "[matrix][ST312][ST315]") {
  check_all("tied", "bf16");
}
TEST_CASE("no setting changes a bit of an untied Llama in fp32", "[matrix][ST312][ST315]") {
  check_all("untied", "fp32");
}
TEST_CASE("no setting changes a bit of an untied Llama in bf16", "[matrix][ST312][ST315]") {
  check_all("untied", "bf16");
}

}  // namespace
}  // namespace sifr::test
