#include "config_schema/detail/json_tree.hpp"

#include "support.hpp"

#include <catch2/catch.hpp>

using config_test::problem_of;
using sifr::detail::JsonNode;
using sifr::detail::Problems;
using sifr::detail::SourceText;

namespace {

JsonNode tree_of(const std::string& text) {
  Problems problems;
  const SourceText source(text, problems);
  JsonNode root = sifr::detail::parse_tree(source, problems);
  problems.throw_if_any("ds.json");
  return root;
}

void check_place(const JsonNode& node, std::int64_t line, std::int64_t column) {
  CHECK(node.position.line == line);
  CHECK(node.position.column == column);
}

}  // namespace

TEST_CASE("every value knows its place and its spelling", "[json_tree]") {
  const JsonNode root = tree_of(R"({
  "number" : -1.50e+3,"text": "a\tb",
  "list": [true,
    {"deep": null}, 7]})");
  check_place(root, 1, 1);
  check_place(*root.find("number"), 2, 14);
  CHECK(root.find("number")->text == "-1.50e+3");
  check_place(*root.find("text"), 2, 31);
  CHECK(root.find("text")->text == "a\tb");
  const JsonNode& list = *root.find("list");
  check_place(list, 3, 11);
  check_place(list.elements[0], 3, 12);
  check_place(list.elements[1], 4, 5);
  check_place(*list.elements[1].find("deep"), 4, 14);
  check_place(list.elements[2], 4, 21);
  CHECK(root.members[2].position.column == 3);
}

TEST_CASE("keys written twice are refused at any depth", "[json_tree][CFG13]") {
  CHECK(problem_of(R"({"zero_optimization": {"stage": 1,
 "stage": 3}})") ==
        "2:2: /zero_optimization/stage: \"stage\" is written twice, first in line 1; remove one");
  CHECK(problem_of(R"({"fp16": {}, "fp16": {}})") ==
        "1:14: /fp16: \"fp16\" is written twice, first in line 1; remove one");
  CHECK(config_test::has(problem_of(R"({"_x": [0, {"a": 1, "b": 2, "a": 3}]})"), "/_x/1/a"));
  CHECK(config_test::has(problem_of(R"({"steps_per_print": 1, "steps_per_print": 1})"), "twice"));
}

TEST_CASE("bad grammar is reported where it is", "[json_tree]") {
  CHECK(config_test::has(problem_of("{\"bf16\": {\"enabled\": tru}}"),
                         "1:25: /bf16/enabled: syntax error"));
  CHECK(config_test::has(problem_of("{\"a\": 1\n\"b\": 2}"), "2:3: /a: syntax error"));
  CHECK(config_test::has(problem_of("{\"a\": NaN}"), "1:7: /a: syntax error"));
  CHECK(config_test::has(problem_of("{} {}"), "syntax error"));
  CHECK(config_test::has(problem_of("{\"a\": \"x"), "syntax error"));
}

TEST_CASE("a document that is no object is refused", "[json_tree]") {
  CHECK(problem_of("[1]") == "1:1: : a config is an object, {…}, but this is a list");
  CHECK(problem_of("\n 3") == "2:2: : a config is an object, {…}, but this is the number 3");
}

TEST_CASE("nesting is bounded", "[json_tree]") {
  const auto nested = [](std::size_t depth) {
    return "{\"_x\": " + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  CHECK(problem_of(nested(63)) == "none");
  CHECK(config_test::has(problem_of(nested(64)), "more than 64 levels of nesting"));
  CHECK(config_test::has(problem_of("{\"_x\": " + std::string(500'000, '[')), "levels of nesting"));
}
