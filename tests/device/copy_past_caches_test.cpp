#include "device/copy_past_caches.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace sifr::test {
namespace {

TEST_CASE("a copy past the caches is a copy, wherever it starts and ends", "[device]") {
  std::vector<std::byte> from(1000);
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<std::byte>(i * 7 % 251);
  for (const std::size_t bytes : {0U, 1U, 63U, 64U, 65U, 127U, 128U, 500U}) {
    for (std::size_t start = 0; start < 130; ++start) {
      std::vector<std::byte> to(from.size(), std::byte{255});
      std::vector<std::byte> expected = to;
      std::copy_n(from.data() + 3, bytes, expected.data() + start);
      copy_past_caches(to.data() + start, from.data() + 3, bytes);
      REQUIRE(to == expected);
    }
  }
}

}  // namespace
}  // namespace sifr::test
