#include "device/philox.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace sifr;

namespace {
using Words = std::array<std::uint32_t, 4>;
}

TEST_CASE("philox gives the published test vectors", "[device]") {
  // kat_vectors of Random123, philox4x32 10.
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8});
  CHECK(philox({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, {0xFFFFFFFF, 0xFFFFFFFF}) ==
        Words{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD});
  CHECK(philox({0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}, {0xA4093822, 0x299F31D0}) ==
        Words{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1});
}

TEST_CASE("normal values have the moments of the normal distribution", "[device]") {
  constexpr int kCount = 100000;
  double moments[4] = {};
  for (int i = 0; i < kCount; ++i) {
    const auto value = static_cast<double>(philox_normal(1, 2, static_cast<std::uint64_t>(i)));
    double power = 1;
    for (double& moment : moments)
      moment += (power *= value) / kCount;
  }
  CHECK(std::abs(moments[0]) < 0.02);
  CHECK(std::abs(moments[1] - 1) < 0.02);
  CHECK(std::abs(moments[2]) < 0.05);
  CHECK(std::abs(moments[3] - 3) < 0.15);
}

TEST_CASE("uniform values fill the unit interval evenly", "[device]") {
  constexpr int kCount = 100000;
  int counts[10] = {};
  for (int i = 0; i < kCount; ++i) {
    const float value = philox_uniform(5, 6, static_cast<std::uint64_t>(i));
    REQUIRE((value >= 0 && value < 1));
    ++counts[static_cast<int>(value * 10)];
  }
  for (const int count : counts)
    CHECK(std::abs(count - kCount / 10) < 500);
}

TEST_CASE("random values depend on the seed, the stream and the whole index", "[device]") {
  const float value = philox_normal(1, 2, 3);
  CHECK(philox_normal(1, 2, 3) == value);
  CHECK(philox_normal(2, 2, 3) != value);
  CHECK(philox_normal(1, 3, 3) != value);
  CHECK(philox_normal(1, 2, 4) != value);
  CHECK(philox_normal(1 | std::uint64_t{1} << 40, 2, 3) != value);
  CHECK(philox_normal(1, 2 | std::uint64_t{1} << 40, 3) != value);
  CHECK(philox_normal(1, 2, 3 | std::uint64_t{1} << 40) != value);
  CHECK(philox_uniform(1, 2, 3) != philox_uniform(1, 2, 3 | std::uint64_t{1} << 40));
}
