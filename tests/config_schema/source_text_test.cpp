#include "config_schema/detail/source_text.hpp"

#include <catch2/catch.hpp>

using sifr::ConfigError;
using sifr::detail::Problems;
using sifr::detail::SourceText;

namespace {

std::string blanked(const std::string& text) {
  Problems problems;
  const SourceText source(text, problems);
  problems.throw_if_any("ds.json");
  return source.json();
}

}  // namespace

TEST_CASE("comments are blanked where they stand", "[source_text]") {
  CHECK(blanked("{# x\n}") == "{   \n}");
  CHECK(blanked("{// x\n}") == "{    \n}");
  CHECK(blanked("{/* x\n */}") == "{    \n   }");
  CHECK(blanked("{} # end") == "{}      ");
  CHECK(blanked("{/**/}") == "{    }");
}

TEST_CASE("what looks like a comment inside a string stays", "[source_text]") {
  const std::string text = R"({"a": "http://x # y /* z */ , ]", "b\"#": 1})";
  CHECK(blanked(text) == text);
}

TEST_CASE("one trailing comma is blanked, also before a comment", "[source_text]") {
  CHECK(blanked("[1,]") == "[1 ]");
  CHECK(blanked("{\"a\": [1, 2 , # c\n ] , }") == "{\"a\": [1, 2      \n ]   }");
}

TEST_CASE("a comma that ends nothing stays an error of grammar", "[source_text]") {
  for (const std::string text : {"[,]", "[1,,]", "{,}", "{\"a\":,}"})
    CHECK(blanked(text) == text);
}

TEST_CASE("columns count characters, not bytes", "[source_text]") {
  Problems problems;
  const SourceText source("{\n\"é\": 1}", problems);
  const sifr::detail::Position position = source.position(source.json().find('1'));
  CHECK(position.line == 2);
  CHECK(position.column == 6);
}

TEST_CASE("a byte-order mark is no character", "[source_text]") {
  Problems problems;
  const SourceText source("\xEF\xBB\xBF{}", problems);
  CHECK(source.json() == "{}");
}

TEST_CASE("a text that is no text is refused with its place", "[source_text]") {
  CHECK_THROWS_WITH(blanked(""), "ds.json:1:1: the file is empty; the smallest config is {}");
  CHECK_THROWS_WITH(blanked(" # only\n"), Catch::Contains("the file is empty"));
  CHECK_THROWS_WITH(blanked(std::string("{}\n\0{}", 6)),
                    Catch::Contains("ds.json:2:1: a NUL byte"));
  CHECK_THROWS_WITH(blanked("{}\n  /* x"),
                    "ds.json:2:3: this comment is never closed; end it with */");
}
