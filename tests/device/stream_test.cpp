#include "device/stream.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace sifr;

namespace {

/// Holds a stream's worker until it is opened.
class Gate {
 public:
  void open() {
    is_open_ = true;
    is_open_.notify_all();
  }
  void pass() { is_open_.wait(false); }

 private:
  std::atomic<bool> is_open_ = false;
};

/// Of this process.
bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  return std::getline(file, line) && line.substr(line.rfind(')')).starts_with(") S");
}

void fail() {
  throw std::runtime_error("the work failed");
}

}  // namespace

TEST_CASE("work on a worker runs in the order of its submission", "[device]") {
  Stream stream = Stream::worker("order");
  CHECK(stream.kind() == StreamKind::kWorker);
  std::vector<int> order;
  for (int i = 0; i < 5000; ++i)
    stream.submit([&order, i] { order.push_back(i); });
  stream.synchronize();
  REQUIRE(order.size() == 5000);
  CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("work on a caller stream is what the calling thread does now", "[device]") {
  Stream stream = Stream::caller();
  CHECK(stream.kind() == StreamKind::kCaller);
  std::thread::id ran_on;
  stream.submit([&] { ran_on = std::this_thread::get_id(); });
  CHECK(ran_on == std::this_thread::get_id());
  CHECK(stream.record().is_complete());
}

TEST_CASE("an event is complete when the work before it is done", "[device]") {
  Gate gate;
  Stream stream = Stream::worker("event");
  const Event before = stream.record();
  stream.submit([&] { gate.pass(); });
  const Event after = stream.record();
  Event copy;
  copy = after;
  CHECK(before.is_complete());
  CHECK_FALSE(after.is_complete());
  gate.open();
  copy.wait();
  CHECK(after.is_complete());
  CHECK(Event{}.is_complete());
  CHECK_NOTHROW(Event{}.wait());
}

TEST_CASE("a worker starts later work after another stream's event", "[device]") {
  Gate gate;
  Stream first = Stream::worker("first");
  Stream second = Stream::worker("second");
  int value = 0;
  int seen = -1;
  first.submit([&] {
    gate.pass();
    value = 7;
  });
  second.wait(first.record());
  second.submit([&] { seen = value; });
  const Event done = second.record();
  CHECK_FALSE(done.is_complete());
  gate.open();
  done.wait();
  CHECK(seen == 7);
}

TEST_CASE("a caller stream blocks until an event is complete", "[device]") {
  Stream worker = Stream::worker("worker");
  Stream caller = Stream::caller();
  int value = 0;
  worker.submit([&] { value = 3; });
  caller.wait(worker.record());
  CHECK(value == 3);
}

TEST_CASE("a failed worker skips later work and tells the error at every wait", "[device]") {
  Stream stream = Stream::worker("failing");
  bool ran = false;
  stream.submit([] {});
  const Event before = stream.record();
  stream.submit([] { fail(); });
  stream.submit([&] { ran = true; });
  const Event after = stream.record();
  CHECK_THROWS_WITH(stream.synchronize(), "the work failed");
  CHECK_THROWS_WITH(stream.synchronize(), "the work failed");
  CHECK_THROWS_WITH(after.wait(), "the work failed");
  CHECK(after.is_complete());
  CHECK_NOTHROW(before.wait());
  CHECK_FALSE(ran);
  CHECK_NOTHROW(stream.submit([&] { ran = true; }));
  CHECK_THROWS_WITH(stream.synchronize(), "the work failed");
  CHECK_FALSE(ran);
}

TEST_CASE("a failed caller stream throws at once and refuses later work", "[device]") {
  Stream stream = Stream::caller();
  const Event before = stream.record();
  CHECK_THROWS_WITH(stream.submit([] { fail(); }), "the work failed");
  bool ran = false;
  CHECK_THROWS_WITH(stream.submit([&] { ran = true; }), "the work failed");
  CHECK_FALSE(ran);
  CHECK_THROWS_WITH(stream.synchronize(), "the work failed");
  CHECK_NOTHROW(before.wait());
}

TEST_CASE("an error travels along events to other streams", "[device]") {
  Stream first = Stream::worker("first");
  Stream second = Stream::worker("second");
  Stream caller = Stream::caller();
  bool ran = false;
  first.submit([] { fail(); });
  second.wait(first.record());
  second.submit([&] { ran = true; });
  CHECK_THROWS_WITH(caller.wait(second.record()), "the work failed");
  CHECK_THROWS_WITH(caller.synchronize(), "the work failed");
  CHECK_FALSE(ran);
}

TEST_CASE("a stream that waits for its own event goes on", "[device]") {
  Stream stream = Stream::worker("own");
  stream.wait(stream.record());
  stream.wait(Event{});
  CHECK_NOTHROW(stream.synchronize());
}

TEST_CASE("submitting to a full queue waits for room", "[device]") {
  Gate gate;
  std::atomic<int> ran = 0;
  std::atomic<bool> is_submitted = false;
  std::atomic<pid_t> thread = 0;
  Stream stream = Stream::worker("full");
  stream.submit([&] { gate.pass(); });
  for (int i = 1; i < 1024; ++i)
    stream.submit([&] { ++ran; });
  std::thread submitter([&] {
    thread = gettid();
    stream.submit([&] { ++ran; });
    is_submitted = true;
  });
  while (!is_submitted && !is_asleep(thread))
    std::this_thread::yield();
  CHECK_FALSE(is_submitted);  // nothing can have made room yet
  gate.open();
  submitter.join();
  stream.synchronize();
  CHECK(ran == 1024);
}

TEST_CASE("work that fills or waits for its own stream is a usage error, not a hang", "[device]") {
  Stream full = Stream::worker("full");
  full.submit([&] {
    for (int i = 0; i < 2000; ++i)
      full.submit([] {});
  });
  CHECK_THROWS_AS(full.synchronize(), UsageError);
  Stream waiting = Stream::worker("waiting");
  waiting.submit([&] { waiting.synchronize(); });
  CHECK_THROWS_AS(waiting.record().wait(), UsageError);
}

TEST_CASE("destroying a stream finishes its work, and events outlive it", "[device]") {
  Gate gate;
  std::atomic<int> ran = 0;
  Event event;
  std::thread opener;
  {
    Stream stream = Stream::worker("ending");
    stream.submit([&] { gate.pass(); });
    for (int i = 0; i < 100; ++i)
      stream.submit([&] { ++ran; });
    event = stream.record();
    opener = std::thread([&] { gate.open(); });
  }
  opener.join();
  CHECK(ran == 100);
  CHECK(event.is_complete());
  CHECK_NOTHROW(event.wait());
}

TEST_CASE("a destroyed stream drops the errors of its work", "[device]") {
  Event event;
  {
    Stream stream = Stream::worker("failing");
    stream.submit([] { fail(); });
    event = stream.record();
  }
  CHECK_THROWS_WITH(event.wait(), "the work failed");
}

TEST_CASE("a stream that is assigned to finishes its work first", "[device]") {
  bool ran = false;
  Stream stream = Stream::worker("old");
  stream.submit([&] { ran = true; });
  stream = Stream::caller();
  CHECK(ran);
  CHECK(stream.kind() == StreamKind::kCaller);
}

TEST_CASE("what a task holds is gone when its event is complete, run or skipped", "[device]") {
  Stream stream = Stream::worker("holding");
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  stream.submit([held] {});
  held.reset();
  stream.synchronize();
  CHECK(watch.expired());
  held = std::make_shared<int>(2);
  const std::weak_ptr<int> skipped = held;
  stream.submit([] { fail(); });
  stream.submit([held] {});
  held.reset();
  CHECK_THROWS(stream.synchronize());
  CHECK(skipped.expired());
}

TEST_CASE("threads may submit to one stream and wait for its events", "[device]") {
  Stream stream = Stream::worker("shared");
  int count = 0;  // only the worker writes it
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 500; ++k) {
        stream.submit([&] { ++count; });
        if (k % 100 == 0) stream.record().wait();
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  stream.synchronize();
  CHECK(count == 1500);
}

TEST_CASE("a stream that was moved from is a usage error", "[device]") {
  Stream stream = Stream::worker("source");
  const Stream target = std::move(stream);
  // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
  CHECK_THROWS_AS(stream.submit([] {}), UsageError);
  CHECK_THROWS_AS(stream.record(), UsageError);
  CHECK_THROWS_AS(stream.synchronize(), UsageError);
}
