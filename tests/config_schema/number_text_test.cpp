#include "config_schema/detail/number_text.hpp"

#include <catch2/catch.hpp>

#include <limits>

using sifr::detail::read_double;
using sifr::detail::read_whole_number;
using Kind = sifr::detail::WholeNumber::Kind;

namespace {

std::int64_t whole(std::string_view text) {
  const auto number = read_whole_number(text);
  CHECK(number.kind == Kind::kWhole);
  return number.value;
}

}  // namespace

TEST_CASE("whole numbers are read in every spelling", "[number_text][CFG01]") {
  CHECK(whole("0") == 0);
  CHECK(whole("-0") == 0);
  CHECK(whole("0.0e5") == 0);
  CHECK(whole("5e8") == 500'000'000);
  CHECK(whole("5E+8") == 500'000'000);
  CHECK(whole("500000000.0") == 500'000'000);
  CHECK(whole("1.5e1") == 15);
  CHECK(whole("1e14") == 100'000'000'000'000);
  CHECK(whole("1200e-2") == 12);
  CHECK(whole("-7.0") == -7);
}

TEST_CASE("large whole numbers are exact", "[number_text][CFG01]") {
  CHECK(whole("9007199254740993.0") == 9007199254740993);  // a double would round it
  CHECK(whole("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
  CHECK(whole("-9223372036854775808") == std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("fractions and numbers beyond 64 bits are told apart", "[number_text][CFG01]") {
  for (const char* text : {"1.5", "15099494.4", "3774873.6", "1e-1", "1e-999999999999999999999"}) {
    CHECK(read_whole_number(text).kind == Kind::kFraction);
  }
  for (const char* text : {"9.3e18", "1e20", "9223372036854775808", "1e999999999999999999999"}) {
    CHECK(read_whole_number(text).kind == Kind::kTooLarge);
  }
}

TEST_CASE("doubles are read to the end of the text or not at all", "[number_text]") {
  CHECK(read_double("1e-3") == 1e-3);
  for (const char* text : {"", "x", "1x", " 1", "1e999", "nan", "inf"})
    CHECK_FALSE(read_double(text));
}
