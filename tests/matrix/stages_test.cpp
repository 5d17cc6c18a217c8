// The matrix in small: three ranks, three micro-batches a step, every stage.
#include "tests/matrix/carry_out.hpp"
#include "tests/matrix/same_bits.hpp"

#include <catch2/catch.hpp>

namespace sifr::test {
namespace {

void check_three_ranks(const std::string& model, const std::string& dtype) {
  check_stages({.model = model, .dtype = dtype});
}

TEST_CASE("every stage trains an odd model to the same bits in fp32", "[matrix][fp32]") {
  check_three_ranks("odd", "fp32");
}
TEST_CASE("every stage trains a tied Llama to the same bits in fp32", "[matrix][fp32]") {
  check_three_ranks("tied", "fp32");
}
TEST_CASE("every stage trains an untied Llama to the same bits in fp32", "[matrix][fp32]") {
  check_three_ranks("untied", "fp32");
}
TEST_CASE("every stage trains an odd model to the same bits in bf16", "[matrix]") {
  check_three_ranks("odd", "bf16");
}
TEST_CASE("every stage trains a tied Llama to the same bits in bf16", "[matrix]") {
  check_three_ranks("tied", "bf16");
}
TEST_CASE("every stage trains an untied Llama to the same bits in bf16", "[matrix]") {
  check_three_ranks("untied", "bf16");
}

TEST_CASE("fp32 and bf16 come to different weights, and so do other ranks and micro-batches",
          "[matrix]") {
  const std::string model = GENERATE("odd", "tied", "untied");
  const auto end_of = [&](const NumberClass& numbers) { return carry_out(numbers.text()).end; };
  const std::string fp32 = end_of({.model = model});
  CHECK(fp32 != end_of({.model = model, .dtype = "bf16"}));
  CHECK(fp32 != end_of({.model = model, .ranks = 2}));
  CHECK(fp32 != end_of({.model = model, .accumulation = 1}));
  CHECK(fp32 != end_of({.model = model, .reduce_at = "boundary"}));
}

}  // namespace
}  // namespace sifr::test
