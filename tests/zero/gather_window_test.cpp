#include "zero/gather_window.hpp"

#include "tests/zero/recording_communicator.hpp"
#include "tests/zero/unit_specs.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <random>

namespace sifr::test {
namespace {

// Leases of units by letter.
std::vector<LeaseEvent> ahead(const std::string& letters) {
  std::vector<LeaseEvent> events;
  for (const char letter : letters)
    events.push_back({LeaseAct::kLease, letter - 'a'});
  return events;
}

// Units of 512 elements (no padding on two ranks), or of the given sizes.
struct Rank {
  Rank(const ZeroOptions& wanted,
       std::int64_t bytes = 0,
       const std::vector<UnitSpec>& units = {unit("a", 512),
                                             unit("b", 512),
                                             unit("c", 512),
                                             unit("d", 512)},
       int rank = 0)
      : options(wanted),
        communicator(rank, 2),
        layout(units, 2),
        store(layout, options, communicator),
        window(layout,
               options,
               store,
               communicator,
               communicator.device().compute(),
               bytes > 0 ? bytes : make_memory_plan(layout, options).window) {}
  void hold(char unit, const std::string& order = "") { window.hold(unit - 'a', ahead(order)); }
  void release(char unit, const std::string& order = "") {
    window.release(unit - 'a', ahead(order));
  }
  void use(char unit, const std::string& order = "") {
    hold(unit, order);
    release(unit, order);
  }
  /// The units gathered since the last call.
  std::string gathered() {
    std::string units;
    for (const std::string& call : communicator.calls())
      units += call.back();
    communicator.forget();
    return units;
  }
  ZeroOptions options;
  RecordingCommunicator communicator;
  Layout layout;
  WeightStore store;
  GatherWindow window;
};

ZeroOptions plain() {
  return {.stage = 3, .prefetch = 0, .persistence = 0};
}
constexpr std::int64_t kUnitBytes = 512 * 4;

TEST_CASE("a unit is gathered once and stays until its memory is asked for", "[zero]") {
  Rank rank(plain());
  rank.use('a');
  rank.use('b');
  rank.use('a');
  CHECK(rank.gathered() == "ab");
  rank.window.refresh();
  rank.use('b');
  CHECK(rank.gathered() == "b");
}

TEST_CASE("held units lie apart, aligned, and keep their place", "[zero]") {
  Rank rank(plain());
  std::vector<const std::byte*> places;
  for (const char unit : {'a', 'b', 'c', 'd'}) {
    rank.hold(unit);
    places.push_back(rank.window.whole(unit - 'a'));
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    CHECK(reinterpret_cast<std::uintptr_t>(places[i]) % 512 == 0);
    CHECK(rank.window.whole(static_cast<int>(i)) == places[i]);
    for (std::size_t j = 0; j < i; ++j)
      CHECK(std::abs(places[i] - places[j]) >= kUnitBytes);
  }
}

TEST_CASE("the unit whose next use lies farthest makes room", "[zero]") {
  Rank rank(plain(), 2 * kUnitBytes);
  rank.use('a', "bcba");
  rank.use('b', "cba");
  rank.use('c', "ba");
  CHECK(rank.gathered() == "abc");
  rank.use('b', "a");  // a's next use was farther than b's
  CHECK(rank.gathered().empty());
  rank.use('a');
  CHECK(rank.gathered() == "a");
}

TEST_CASE("a unit that the order does not name again goes first", "[zero]") {
  Rank rank(plain(), 2 * kUnitBytes);
  rank.use('a', "ba");
  rank.use('b', "ca");
  rank.use('c', "a");
  rank.use('a');
  CHECK(rank.gathered() == "abc");
}

TEST_CASE("prefetch gathers what comes next, until its budget of elements is crossed", "[zero]") {
  const auto prefetched = [](std::int64_t budget, const std::string& order) {
    ZeroOptions options = plain();
    options.prefetch = budget;
    Rank rank(options);
    rank.hold('a', order);
    rank.window.prefetch(ahead(order));
    return rank.gathered();
  };
  CHECK(prefetched(0, "bcd") == "a");
  CHECK(prefetched(1, "bcd") == "ab");
  CHECK(prefetched(512, "bcd") == "ab");
  CHECK(prefetched(513, "bcd") == "abc");
  CHECK(prefetched(1024, "bcd") == "abc");
  CHECK(prefetched(1536, "bcd") == "abcd");
  CHECK(prefetched(1024, "abbc") == "abc");  // held and repeated units cost nothing
}

TEST_CASE("what is gathered already counts in the prefetch budget", "[zero]") {
  ZeroOptions options = plain();
  options.prefetch = 1024;
  Rank rank(options);
  rank.use('b');
  rank.use('c');
  rank.window.prefetch(ahead("bcd"));
  CHECK(rank.gathered() == "bc");
}

TEST_CASE("prefetch drops nothing that is used sooner", "[zero]") {
  ZeroOptions options = plain();
  options.prefetch = 10'000;
  Rank rank(options, 2 * kUnitBytes);
  rank.use('b', "a");
  rank.hold('a', "bca");
  rank.window.prefetch(ahead("bca"));
  CHECK(rank.gathered() == "ba");
  rank.release('a', "bca");
  rank.hold('b', "cba");
  rank.window.prefetch(ahead("cba"));
  CHECK(rank.gathered() == "c");  // in the place of a, which comes later
}

TEST_CASE("the live limit drops free units and holds back prefetch, not leases", "[zero]") {
  ZeroOptions options = plain();
  options.max_live = 1024;
  options.prefetch = 10'000;
  Rank rank(options, 4 * kUnitBytes);
  rank.hold('a', "bcd");
  rank.window.prefetch(ahead("bcd"));
  CHECK(rank.gathered() == "ab");
  rank.hold('b', "cd");
  rank.hold('c', "d");
  CHECK(rank.gathered() == "c");
  rank.release('a', "d");
  rank.release('b', "d");
  rank.use('d');
  rank.use('c');
  CHECK(rank.gathered() == "d");
  rank.use('a');
  CHECK(rank.gathered() == "a");
}

TEST_CASE("small units stay gathered and follow every update", "[zero]") {
  ZeroOptions options = plain();
  options.persistence = 512;
  options.max_live = 512;
  Rank rank(options, 0, {unit("a", 512), unit("b", 3000), unit("c", 3000), unit("d", 400)});
  rank.window.refresh();
  CHECK(rank.gathered() == "ad");
  for (const char unit : std::string("abcdcba"))
    rank.use(unit);
  CHECK(rank.gathered() == "bcb");
  rank.window.refresh();
  CHECK(rank.gathered() == "ad");
}

TEST_CASE("a unit whose next use is too far is dropped at its release", "[zero]") {
  ZeroOptions options = plain();
  options.max_reuse_distance = 1024;
  Rank rank(options);
  rank.use('a', "bca");
  rank.use('a');
  CHECK(rank.gathered() == "a");
  rank.use('b', "acdb");
  rank.use('b', "acdb");
  CHECK(rank.gathered() == "bb");
}

TEST_CASE("no room beside held units is an OutOfMemory that names them", "[zero]") {
  Rank rank(plain(), 2 * kUnitBytes);
  rank.hold('b');
  rank.hold('d');
  CHECK_THROWS_WITH(rank.hold('a'),
                    Catch::Contains("the gather window of 0.01 MiB has no room for unit 'a' (0.01 "
                                    "MiB) while leases on 'b', 'd' are open"));
  rank.release('b');
  rank.hold('a');
  CHECK(rank.gathered() == "bda");
}

TEST_CASE("at the least window one unit of any size fits beside one that is held", "[zero]") {
  std::mt19937 random(GENERATE(1, 2, 3, 4, 5, 6, 7, 8));
  std::vector<UnitSpec> units;
  for (int u = 0; u < 12; ++u)
    units.push_back(unit("u" + std::to_string(u), 1 + random() % 9000));
  ZeroOptions options = plain();
  options.max_live = 4000;
  options.prefetch = random() % 8000;
  Rank rank(options, 0, units);
  const auto letters = [&] {
    std::string order;
    for (int i = 0; i < 8; ++i)
      order += static_cast<char>('a' + random() % 12);
    return order;
  };
  char held = 'a';
  rank.hold(held, letters());
  for (int i = 0; i < 300; ++i) {
    const auto next = static_cast<char>('a' + random() % 12);
    const std::string order = letters();
    if (next == held) continue;
    rank.hold(next, order);
    rank.window.prefetch(ahead(order));
    rank.release(held, order);
    held = next;
  }
}

TEST_CASE("every rank makes the same gathers, whatever it is", "[zero]") {
  std::vector<std::string> sequences;
  for (const int number : {0, 1}) {
    ZeroOptions options = plain();
    options.prefetch = 900;
    options.persistence = 60;
    options.max_live = 1500;
    Rank rank(options,
              0,
              {unit("a", 50), unit("b", 700), unit("c", 333), unit("d", 1031), unit("e", 512)},
              number);
    std::mt19937 random(7);
    for (int i = 0; i < 200; ++i) {
      const auto next = static_cast<char>('a' + random() % 5);
      std::string order;
      for (int k = 0; k < 6; ++k)
        order += static_cast<char>('a' + random() % 5);
      rank.hold(next, order);
      rank.window.prefetch(ahead(order));
      rank.release(next, order);
      if (i % 20 == 19) rank.window.refresh();
    }
    sequences.push_back(rank.gathered());
  }
  CHECK(sequences[0] == sequences[1]);
  CHECK(sequences[0].size() > 50);
}

TEST_CASE("debug mode drops and poisons at release, and gives each unit its own place", "[zero]") {
  ZeroOptions options = plain();
  options.stage = GENERATE(0, 3);
  options.poison = true;
  options.prefetch = 10'000;
  options.persistence = 10'000;
  Rank rank(options);
  const auto reads_nan = [](const std::byte* place) {
    return std::isnan(*reinterpret_cast<const volatile float*>(place));
  };
  rank.hold('a', "bcd");
  const std::byte* a = rank.window.whole(0);
  rank.window.prefetch(ahead("bcd"));
  CHECK(rank.gathered() == (options.stage == 3 ? "a" : ""));
  CHECK(reads_nan(a + kUnitBytes));
  rank.release('a', "bcd");
  rank.hold('b', "cd");
  CHECK(rank.window.whole(1) == a + kUnitBytes);
  CHECK(reads_nan(a));
  CHECK(reads_nan(a + kUnitBytes - 4));
  if (options.stage == 0) CHECK_FALSE(reads_nan(a + kUnitBytes));  // a copy of the zeros
}

}  // namespace
}  // namespace sifr::test
