#include "examples/llama/shape.hpp"

#include <catch2/catch.hpp>

#include <stdexcept>
#include <string>

using Catch::Matchers::Contains;

namespace {

constexpr const char* kTiny =
    "hidden=64,layers=2,heads=4,kv_heads=2,intermediate=128,vocab=256,tied=0";

TEST_CASE("a shape is read from its text and written back", "[llama]") {
  const llama::LlamaShape shape = llama::parse_shape(kTiny);
  CHECK(shape.hidden == 64);
  CHECK(shape.kv_heads == 2);
  CHECK(shape.head_size == 16);
  CHECK_FALSE(shape.tied);
  CHECK(llama::parse_shape(llama::to_string(shape)) == shape);
}

TEST_CASE("a shape may set head size, theta and eps", "[llama]") {
  const llama::LlamaShape shape =
      llama::parse_shape(std::string(kTiny) + ",head_size=20,rope_theta=1e5,rms_eps=1e-6");
  CHECK(shape.head_size == 20);
  CHECK(shape.query_width() == 80);
  CHECK(shape.rope_theta == 1e5);
  CHECK(shape.rms_eps == 1e-6);
}

TEST_CASE("the parameter count of SmolLM2-135M is its published one", "[llama]") {
  const llama::LlamaShape shape = llama::parse_shape(
      "hidden=576,layers=30,heads=9,kv_heads=3,intermediate=1536,vocab=49152,tied=1");
  CHECK(shape.parameter_count() == 134515008);
}

TEST_CASE("everything wrong in a shape's text is told at once", "[llama]") {
  CHECK_THROWS_WITH(llama::parse_shape("hiden=64,layers=two,heads=4,heads=4,tied=yes,x"),
                    Contains("'hiden' is no key") && Contains("layers=two: needs a whole number") &&
                        Contains("heads is written twice") && Contains("tied=yes: needs 0 or 1") &&
                        Contains("'x': needs the form key=value") && Contains("vocab is missing"));
}

TEST_CASE("a shape that no Llama can have is refused with the reason", "[llama]") {
  const std::string rest = ",layers=2,intermediate=128,vocab=256,tied=0";
  CHECK_THROWS_WITH(llama::parse_shape("hidden=65,heads=4,kv_heads=2" + rest),
                    Contains("hidden=65 is no multiple of heads=4"));
  CHECK_THROWS_WITH(llama::parse_shape("hidden=64,heads=4,kv_heads=3" + rest),
                    Contains("heads=4 must be a multiple of kv_heads=3"));
  CHECK_THROWS_WITH(llama::parse_shape("hidden=12,heads=4,kv_heads=2" + rest),
                    Contains("head_size=3 must be even"));
  CHECK_THROWS_WITH(llama::parse_shape("hidden=0,heads=4,kv_heads=2" + rest),
                    Contains("hidden=0: must be from 1"));
  CHECK_THROWS_WITH(llama::parse_shape("hidden=2147483648,heads=4,kv_heads=2" + rest),
                    Contains("hidden=2147483648: must be from 1 to 1000000000"));
  CHECK_THROWS_WITH(llama::parse_shape(std::string(kTiny) + ",head_size=99999999999999999999"),
                    Contains("head_size=99999999999999999999: needs a whole number"));
  for (const char* value : {"nan", "0", "-1e-05", "1e+300", "1e-300", "inf"})
    CHECK_THROWS_WITH(llama::parse_shape(std::string(kTiny) + ",rms_eps=" + value),
                      Contains("rms_eps=" + std::string(value) + ": must be from 1e-30 to 1"));
  for (const char* value : {"nan", "0", "-10000", "1e+300", "0.5"})
    CHECK_THROWS_WITH(llama::parse_shape(std::string(kTiny) + ",rope_theta=" + value),
                      Contains("rope_theta=" + std::string(value) + ": must be from 1 to 1e+30"));
  CHECK_THROWS_AS(llama::parse_shape(""), std::invalid_argument);
}

TEST_CASE("a shape with more parameters than can be counted is refused", "[llama]") {
  CHECK_THROWS_WITH(
      llama::parse_shape("hidden=1000000000,layers=10000,heads=1000000000,kv_heads=1000000000,"
                         "head_size=1000000000,intermediate=8,vocab=8,tied=0"),
      Contains("more than 10^15 parameters"));
  CHECK_THROWS_WITH(
      llama::parse_shape("hidden=8,layers=10001,heads=1,kv_heads=1,intermediate=8,vocab=8,tied=1"),
      Contains("layers=10001: must be from 1 to 10000"));
}

}  // namespace
