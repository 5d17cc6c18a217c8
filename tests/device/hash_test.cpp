#include "device/kernels.hpp"
#include "device/thread_pool.hpp"
#include "tests/device/random_values.hpp"
#include "tests/support/python.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <fstream>
#include <set>
#include <string>

using namespace sifr;
using namespace sifr::test;

namespace {

kernels::Hash128 hash(ConstView values, std::int64_t parameter, std::int64_t first = 0) {
  Stream stream = Stream::caller();
  kernels::Hash128 result;
  kernels::hash(values, parameter, first, result, stream);
  return result;
}

}  // namespace

TEST_CASE("a hash is the same however the values are cut on quanta", "[device]") {
  ThreadPool pool(3);
  Stream stream = Stream::worker("hash", &pool);
  const std::vector<float> values = ordinary_values(100003, 1);
  const ConstView whole = view_of(values);
  kernels::Hash128 in_one;
  kernels::hash(whole, 4, 0, in_one, stream);
  stream.synchronize();
  constexpr std::int64_t kCut = 300 * kernels::kQuantum;
  kernels::Hash128 parts = hash(whole.slice(kCut, 100003 - kCut), 4, kCut);
  parts.add(hash(whole.slice(0, kCut), 4));
  CHECK(in_one == parts);
  CHECK(in_one == hash(whole, 4));
}

TEST_CASE("any flipped bit changes the hash", "[device]") {
  std::vector<std::uint32_t> words(300);
  const auto view = [&] {
    return ConstView{reinterpret_cast<const std::byte*>(words.data()), 300, DType::kFloat32};
  };
  for (const std::uint32_t fill : {0U, 0xFFFFFFFFU, 0x3F800000U}) {
    std::fill(words.begin(), words.end(), fill);
    std::set<std::string> seen = {hash(view(), 0).to_string()};
    for (std::uint32_t& word : words) {
      for (int bit = 0; bit < 32; ++bit) {
        word ^= 1U << bit;
        seen.insert(hash(view(), 0).to_string());
        word ^= 1U << bit;
      }
    }
    CHECK(seen.size() == 300 * 32 + 1);
  }
}

TEST_CASE("swapped parameters, moved quanta and other lengths change the hash", "[device]") {
  const std::vector<float> a = ordinary_values(512, 1);
  const std::vector<float> b = ordinary_values(512, 2);
  kernels::Hash128 straight = hash(view_of(a), 0);
  straight.add(hash(view_of(b), 1));
  kernels::Hash128 swapped = hash(view_of(b), 0);
  swapped.add(hash(view_of(a), 1));
  CHECK_FALSE(straight == swapped);
  CHECK_FALSE(hash(view_of(a), 0) == hash(view_of(a), 0, 256));
  const std::vector<float> zeros(300);
  CHECK_FALSE(hash(view_of(zeros).slice(0, 299), 0) == hash(view_of(zeros), 0));
  CHECK(hash(view_of(zeros).slice(0, 0), 0) == kernels::Hash128{});
}

TEST_CASE("the Python program of the documentation computes the same hash", "[device]") {
  if (std::string(SIFR_PYTHON).empty()) {
    WARN("[skipped] python3 is missing");
    return;
  }
  const TemporaryFolder folder;
  const std::vector<float> single = any_values(1000, 1);
  const std::vector<bfloat16> half = narrow<bfloat16>(any_values(513, 2));
  const std::vector<float> small = ordinary_values(1, 3);
  std::string arguments;
  kernels::Hash128 expected;
  std::int64_t parameter = 0;
  for (const ConstView view :
       {ConstView(view_of(single)), ConstView(view_of(half)), ConstView(view_of(small))}) {
    const auto path = folder.path() / std::to_string(parameter);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(view.data), view.bytes());
    arguments += fmt::format(" '{}:{}'", size_of(view.dtype), path.string());
    expected.add(hash(view, parameter++));
  }
  CHECK(run_python(SIFR_PYTHON, SIFR_TEST_DIR "/weights_hash.py", arguments) ==
        expected.to_string() + "\n");
}

TEST_CASE("a hash that begins inside a quantum is a usage error", "[device]") {
  const std::vector<float> values(10);
  CHECK_THROWS_AS(hash(view_of(values), 0, 100), UsageError);
  CHECK_THROWS_AS(hash(view_of(values), 0, -256), UsageError);
}

TEST_CASE("hashes add modulo 2^128 and print as 32 digits", "[device]") {
  kernels::Hash128 sum{.low = ~std::uint64_t{0}, .high = 1};
  sum.add({.low = 2, .high = ~std::uint64_t{0}});
  CHECK(sum == kernels::Hash128{.low = 1, .high = 1});
  CHECK(sum.to_string() == "00000000000000010000000000000001");
}
