#include "device/memory.hpp"

#include <catch2/catch.hpp>

#include <limits>
#include <thread>
#include <utility>
#include <vector>

using namespace sifr;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

TEST_CASE("an account tells bytes now and at their peak by tier and purpose", "[device]") {
  const auto account = MemoryAccount::make({});
  Charge weights = account->charge(100, Purpose::kWeights);
  {
    const Charge window = account->charge(50, Purpose::kWindow);
    const Charge staging = account->charge(7, Purpose::kStaging, Tier::kHost);
  }
  const Charge bucket = account->charge(20, Purpose::kBucket);
  const MemoryTable table = account->table();
  CHECK(table.row(Tier::kDevice, Purpose::kWeights).now == 100);
  CHECK(table.row(Tier::kDevice, Purpose::kWindow).now == 0);
  CHECK(table.row(Tier::kDevice, Purpose::kWindow).peak == 50);
  CHECK(table.row(Tier::kHost, Purpose::kStaging).peak == 7);
  CHECK(table.total(Tier::kDevice).now == 120);
  CHECK(table.total(Tier::kDevice).peak == 150);  // not 170: window and bucket never met
  CHECK(table.total(Tier::kHost).now == 0);
}

TEST_CASE("a charge ends once, wherever it was moved to", "[device]") {
  const auto account = MemoryAccount::make({});
  Charge first = account->charge(10, Purpose::kOptimizer);
  Charge second = std::move(first);
  Charge third = account->charge(5, Purpose::kOptimizer);
  third = std::move(second);
  CHECK(third.bytes() == 10);
  CHECK(account->table().total(Tier::kDevice).now == 10);
  third = Charge{};
  CHECK(account->table().total(Tier::kDevice).now == 0);
}

TEST_CASE("a charge keeps its account alive", "[device]") {
  auto account = MemoryAccount::make({});
  const std::weak_ptr<MemoryAccount> watch = account;
  Charge charge = account->charge(10, Purpose::kOptimizer);
  account.reset();
  CHECK_FALSE(watch.expired());
  charge = Charge{};
  CHECK(watch.expired());
}

TEST_CASE("a limit holds to the byte and leaves the account unchanged", "[device]") {
  const auto account = MemoryAccount::make({.device = 1000, .host = 10});
  const Charge most = account->charge(1000, Purpose::kWeights);
  CHECK_NOTHROW(account->charge(0, Purpose::kWindow));
  CHECK_THROWS_AS(account->charge(1, Purpose::kWindow), OutOfMemory);
  CHECK_THROWS_AS(account->charge(11, Purpose::kStaging, Tier::kHost), OutOfMemory);
  CHECK_NOTHROW(account->charge(10, Purpose::kStaging, Tier::kHost));
  CHECK(account->table().total(Tier::kDevice).now == 1000);
  CHECK(account->table().row(Tier::kDevice, Purpose::kWindow).peak == 0);
}

TEST_CASE("OutOfMemory names the purpose, both numbers and the table", "[device]") {
  const auto account = MemoryAccount::make({.device = 3 << 20});
  const Charge weights = account->charge(1 << 20, Purpose::kWeights);
  try {
    const Charge charge = account->charge(4 << 20, Purpose::kOptimizer);
    FAIL("the limit was ignored");
  } catch (const Error& error) {
    const std::string text = error.message();
    CHECK_THAT(text, Contains("optimizer needs 4.00 MiB of device memory"));
    CHECK_THAT(text, Contains("2.00 MiB are left of the limit of 3.00 MiB"));
    CHECK_THAT(text, EndsWith("\nrefused: 4.00 MiB for optimizer, limit 3.00 MiB"));
    CHECK_THAT(text, Contains("weights") && Contains("1.00") && Contains("unaccounted"));
  }
  try {
    const Charge charge = account->charge(4 << 20, Purpose::kOptimizer);
  } catch (const OutOfMemory& error) {
    CHECK(error.table().total(Tier::kDevice).now == 1 << 20);
    CHECK(error.table().row(Tier::kDevice, Purpose::kOptimizer).now == 0);
    CHECK(error.table().row(Tier::kDevice, Purpose::kOptimizer).refused == 4 << 20);
    CHECK(error.table().limits.device == 3 << 20);
  }
}

TEST_CASE("sizes and limits below zero are usage errors, overflow is OutOfMemory", "[device]") {
  CHECK_THROWS_AS(MemoryAccount::make({.device = -1}), UsageError);
  const auto account = MemoryAccount::make({});
  CHECK_THROWS_AS(account->charge(-1, Purpose::kWeights), UsageError);
  const Charge some = account->charge(2, Purpose::kWeights);
  CHECK_THROWS_AS(account->charge(std::numeric_limits<std::int64_t>::max(), Purpose::kWeights),
                  OutOfMemory);
}

TEST_CASE("an error's text is for the caller, its check for who maintains sifr", "[device]") {
  try {
    static_cast<void>(MemoryAccount::make({.device = -1}));
    FAIL("no error");
  } catch (const UsageError& error) {
    CHECK(std::string(error.message()) == "a memory limit is -1 bytes, needs 0 or more");
    CHECK_THAT(error.check(), StartsWith("limit.value_or(0) >= 0, memory.cpp:"));
  }
  CHECK(std::string(UsageError("alone").check()).empty());
}

TEST_CASE("an account may be used by several threads", "[device]") {
  const auto account = MemoryAccount::make({.device = 1000});
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k)
        const Charge charge = account->charge(10, Purpose::kActivation);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  const MemoryTable table = account->table();
  CHECK(table.total(Tier::kDevice).now == 0);
  CHECK(table.total(Tier::kDevice).peak <= 40);
}

TEST_CASE("the table shows rows that ever held bytes in MiB, and what is unaccounted last",
          "[device]") {
  const auto account = MemoryAccount::make({});
  { const Charge window = account->charge(3 << 20, Purpose::kWindow); }
  const Charge weights = account->charge(5 << 19, Purpose::kWeights);
  const std::string text = account->table().to_string();
  CHECK_THAT(text, Contains("device  weights") && Contains("2.50"));
  CHECK_THAT(text, Contains("device  window") && Contains("0.00         3.00"));
  CHECK_THAT(text, !Contains("bucket") && !Contains("host"));
  CHECK(text.rfind("unaccounted") > text.rfind("total"));
  CHECK(text.back() != '\n');
  CHECK(resident_bytes() > 0);
}

TEST_CASE("what is refused for several purposes has its sum, and nothing is unaccounted below 0",
          "[device]") {
  const auto account = MemoryAccount::make({.device = std::int64_t{1} << 50});
  const Charge beyond = account->charge(std::int64_t{1} << 49, Purpose::kWindow);
  const MemoryTable table = account->table()
                                .with_refused(Tier::kDevice, Purpose::kWeights, 1 << 20)
                                .with_refused(Tier::kDevice, Purpose::kBucket, 1);
  CHECK_THAT(table.to_string(),
             Contains("process unaccounted          0.00\n"
                      "refused: 1.00 MiB for weights\n"
                      "refused: 0.01 MiB for bucket\n"
                      "refused: 1.01 MiB in all, limit 1073741824.00 MiB"));
  CHECK(table.row(Tier::kDevice, Purpose::kWeights).now == 0);
}

TEST_CASE("sizes for people are MiB, rounded up", "[device]") {
  CHECK(mib(0) == "0.00 MiB");
  CHECK(mib(1) == "0.01 MiB");
  CHECK(mib(3 << 19) == "1.50 MiB");
  CHECK(mib((1 << 20) - 1) == "1.00 MiB");
  CHECK(mib((1 << 20) + 1) == "1.01 MiB");
  CHECK(mib(std::numeric_limits<std::int64_t>::max()) == "8796093022208.00 MiB");
}

TEST_CASE("a buffer gives its memory back before its charge", "[device]") {
  const auto account = MemoryAccount::make({});
  std::int64_t charged_at_free = -1;
  std::byte storage[8];
  std::shared_ptr<void> keep(
      storage, [&](void*) { charged_at_free = account->table().total(Tier::kDevice).now; });
  Buffer buffer(storage, 8, account->charge(8, Purpose::kBucket), std::move(keep));
  Buffer moved = std::move(buffer);
  CHECK(buffer.data() == nullptr);  // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
  CHECK(buffer.bytes() == 0);
  CHECK(moved.data() == storage);
  CHECK(charged_at_free == -1);
  moved = Buffer{};
  CHECK(charged_at_free == 8);
  CHECK(account->table().total(Tier::kDevice).now == 0);
}
