#include "support.hpp"

#include <catch2/catch.hpp>

using namespace config_test;

TEST_CASE("bytes that are no text are refused with their place", "[robustness]") {
  CHECK(has(problem_of("{\"a\xFF\": 1}"), "1:4: : syntax error"));
  CHECK(has(problem_of("{\"a\": \"\xC3\"}"), "ill-formed UTF-8"));
  CHECK(has(problem_of("\xFF\xFE{\0}"), "1:1: : syntax error"));
  CHECK(has(problem_of(std::string("{}\0", 3)), "1:3: : a NUL byte"));
  CHECK(has(problem_of("{\"a\": \"\\u0000\\u001f\\ud800\"}"), "1:"));
}

TEST_CASE("numbers too large for any type are refused with their place", "[robustness]") {
  CHECK(has(problem_of(R"({"gradient_clipping": 1e999})"), "/gradient_clipping: number overflow"));
  CHECK(has(problem_of(R"({"fp16": {"loss_scale": 1e999}})"), "/fp16/loss_scale"));
  CHECK(has(problem_of(R"({"train_batch_size": 99999999999999999999999})"),
            "at most 9223372036854775807"));
  CHECK(has(problem_of(R"({"sifr": {"seed": -99999999999999999999999}})"), "/sifr/seed"));
  CHECK(has(problem_of(R"({"gradient_clipping": 1e-999})"), "a double can hold"));
}

TEST_CASE("text from the file is cut and escaped in messages", "[robustness]") {
  const std::string problem = problem_of("{\"" + std::string(10'000, 'x') + "\\u0007\": 1}");
  CHECK(problem.size() < 400);
  CHECK(has(problem_of("{\"a\\u0007b~/\": 1}"), "/a\\x07b~0~1: unknown key \"a\\x07b~/\""));
}

TEST_CASE("many problems end in a count", "[robustness]") {
  std::string json = "{";
  for (int i = 0; i < 5000; ++i)
    json += "\"key" + std::to_string(i) + "\": 1,";
  const auto problems = problems_of(json + "}");
  CHECK(problems.size() <= 101);
  CHECK(problems.size() >= 100);
}

TEST_CASE("a lenient config does not warn for ever", "[robustness]") {
  std::string json = R"({"sifr": {"strict": "warn"}, )";
  for (int i = 0; i < 5000; ++i)
    json += "\"key" + std::to_string(i) + "\": 1,";
  const sifr::Config config = parse(json + "}");
  CHECK(config.notices.size() == 101);
  CHECK(has(config.notices.back(), "more unknown keys"));
}

TEST_CASE("a file too large for a config is refused at once", "[robustness]") {
  CHECK(has(problem_of(std::string((1 << 20) + 1, ' ')), "too many for a config"));
  CHECK(has(problem_of("{\"_x\": [" + std::string(500'000, '1') + "]}"), "number overflow"));
}
