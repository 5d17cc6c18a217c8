#include "device/detail/log.hpp"

#include <catch2/catch.hpp>

#include <stdexcept>
#include <string>
#include <vector>

using namespace sifr;

TEST_CASE("a notice reaches the sink with its rank and room", "[device]") {
  std::vector<std::string> texts;
  const Log sink = [&](Level level, std::string_view text) {
    texts.push_back((level == Level::kWarning ? "W " : "? ") + std::string(text));
  };
  detail::log(sink, 3, "comm", Level::kWarning, "{} of {} ranks are silent", 1, 4);
  REQUIRE(texts.size() == 1);
  CHECK(texts[0] == "W [rank 3] [comm] 1 of 4 ranks are silent");
}

TEST_CASE("a sink that throws does not end the work that it reports", "[device]") {
  const Log sink = [](Level, std::string_view) { throw std::runtime_error("the disk is full"); };
  CHECK_NOTHROW(detail::log(sink, 0, "device", Level::kError, "a text"));
}
