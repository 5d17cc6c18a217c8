#include "comm/group.hpp"
#include "tests/comm/run_group.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

using namespace sifr;
using namespace sifr::test;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

/// The same gather on every rank, of `count` elements for each.
void gather(Communicator& group, std::int64_t count, std::string_view tag) {
  std::vector<float> values(static_cast<std::size_t>(count * group.size()));
  const View whole = {
      reinterpret_cast<std::byte*>(values.data()), count * group.size(), DType::kFloat32};
  const GatherPart part = {whole.slice(group.rank() * count, count), whole};
  group.all_gather({&part, 1}, {tag}, group.stream()).wait();
}

std::string message_of(const std::exception_ptr& error) {
  return error ? text_of(error) : "";
}

template <class Type>
bool is_a(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const Type&) {
    return true;
  } catch (const std::exception&) {
    return false;
  }
  return false;
}

}  // namespace

TEST_CASE("ranks that gather different units are told both sides", "[comm]") {
  const GroupErrors errors = collect_group_errors(3, {}, [](Communicator& group) {
    gather(group, 4, group.rank() == 2 ? "block.4" : "block.3");
  });
  for (const auto& error : errors) {
    CHECK(is_a<CommError>(error));
    CHECK_THAT(message_of(error),
               Contains("rank 0 called all-gather \"block.3\"") &&
                   Contains("rank 2 called all-gather \"block.4\""));
  }
}

TEST_CASE("ranks that gather different sizes are told both sides", "[comm]") {
  const GroupErrors errors = collect_group_errors(
      2, {}, [](Communicator& group) { gather(group, 4 + group.rank(), "block.3"); });
  for (const auto& error : errors) {
    CHECK_THAT(message_of(error), Contains("with 32 bytes") && Contains("with 40 bytes"));
  }
}

TEST_CASE("a gather that meets a reduction is told to both", "[comm]") {
  const GroupErrors errors = collect_group_errors(2, {}, [](Communicator& group) {
    if (group.rank() == 0) return gather(group, 4, "block.3");
    std::vector<float> whole(8);
    const View view = {reinterpret_cast<std::byte*>(whole.data()), 8, DType::kFloat32};
    const ReducePart part = {.whole = view, .slice_count = 4, .sum = view.slice(0, 4)};
    group.reduce_scatter({&part, 1}, {"block.3"}, group.stream()).wait();
  });
  for (const auto& error : errors) {
    CHECK_THAT(message_of(error),
               Contains("rank 0 called all-gather") && Contains("rank 1 called reduce-scatter"));
  }
}

TEST_CASE("a dtype that differs between two ranks is found although rank 0 contributes zeros",
          "[comm]") {
  const GroupErrors errors = collect_group_errors(3, {}, [](Communicator& group) {
    std::vector<float> whole(6);
    std::vector<float> sum(2);
    const DType dtype = group.rank() == 1 ? DType::kBFloat16 : DType::kFloat32;
    ReducePart part = {.whole = ConstView{reinterpret_cast<std::byte*>(whole.data()), 6, dtype},
                       .slice_count = 2,
                       .sum = {reinterpret_cast<std::byte*>(sum.data()), 2, DType::kFloat32}};
    if (group.rank() == 0) part.whole = {};
    group.reduce_scatter({&part, 1}, {"mixed"}, group.stream()).wait();
  });
  for (const auto& error : errors) {
    CHECK_THAT(message_of(error),
               Contains("bf16 from 0 in slices of 2 on rank 1") && Contains("fp32"));
  }
}

TEST_CASE("every rank's failure reaches all with its text", "[comm][COM17]") {
  for (int culprit = 0; culprit < 4; ++culprit) {
    const GroupErrors errors = collect_group_errors(4, {}, [culprit](Communicator& group) {
      gather(group, 100, "block.0");
      if (group.rank() == culprit) throw std::runtime_error("the batch is empty");
      gather(group, 100, "block.1");
    });
    for (int r = 0; r < 4; ++r) {
      const std::string own = "the batch is empty";
      const std::string text = message_of(errors[static_cast<std::size_t>(r)]);
      CHECK(text == (r == culprit ? own : "rank " + std::to_string(culprit) + " failed: " + own));
    }
  }
}

TEST_CASE("the others hear a failure's first line, with its rank", "[comm][COM17]") {
  const GroupErrors errors = collect_group_errors(2, {}, [](Communicator& group) {
    if (group.rank() == 1) throw std::runtime_error("no room\n  weights  2 MiB\n  sum      2 MiB");
    gather(group, 1, "block");
  });
  CHECK(message_of(errors[0]) == "rank 1 failed: no room");
  CHECK_THAT(message_of(errors[1]), Contains("weights  2 MiB"));
}

TEST_CASE("after a failure every call throws the same error", "[comm]") {
  std::array<std::atomic<int>, 2> same = {};
  collect_group_errors(2, {}, [&same](Communicator& group) {
    if (group.rank() == 1) return group.abort("no more");
    const auto throws_it = [&](const std::function<void()>& call) {
      try {
        call();
      } catch (const CommError& error) {
        same[0] += error.rank() == 1 && std::string(error.what()) == "rank 1 failed: no more";
      }
    };
    throws_it([&] { group.barrier({"first"}); });
    throws_it([&] { gather(group, 1, "second"); });
    throws_it([&] { group.check(); });
    throws_it([&] { (void)group.allocate(1, Purpose::kBucket); });
  });
  CHECK(same[0] == 4);
}

TEST_CASE("a rank that leaves is named to those who wait for it", "[comm]") {
  const GroupErrors errors = collect_group_errors(3, {}, [](Communicator& group) {
    group.set_phase("step 7, backward");
    group.barrier({"start"});
    if (group.rank() != 1) gather(group, 5, "block.2");
  });
  CHECK_FALSE(errors[1]);
  for (const std::size_t r : {0U, 2U}) {
    CHECK_THAT(message_of(errors[r]),
               Contains("rank 1 left the group (its phase: step 7, backward)") &&
                   Contains("all-gather \"block.2\""));
  }
}

TEST_CASE("a silent rank ends the group at the deadline and is named", "[comm]") {
  std::atomic<bool> others_gave_up = false;
  const GroupErrors errors = collect_group_errors(3, {}, [&](Communicator& group) {
    group.set_phase("step 3");
    group.barrier({"start"});  // threads take their time to start
    group.set_timeout(300ms);
    if (group.rank() == 2) {
      while (!others_gave_up)
        std::this_thread::sleep_for(1ms);
      return group.barrier({"too late"});
    }
    try {
      gather(group, 5, "block.2");
    } catch (...) {
      others_gave_up = true;
      throw;
    }
  });
  for (const auto& error : errors) {
    CHECK(is_a<CommTimeout>(error));
    CHECK_THAT(message_of(error),
               Contains("all-gather \"block.2\"") &&
                   Contains("rank 2 (last collective: number 1, barrier start; phase: step 3)") &&
                   Contains("raise comm_timeout"));
  }
}

TEST_CASE("a long wait is reported with the missing rank and the collective", "[comm][COM18]") {
  std::mutex mutex;
  std::string notices;
  std::atomic<bool> reported = false;
  GroupOptions options;
  options.report_after = 20ms;
  options.log = [&](Level, std::string_view text) {
    const std::lock_guard lock(mutex);
    notices += std::string(text) + "\n";
    reported = true;
  };
  const GroupErrors errors = collect_group_errors(2, options, [&](Communicator& group) {
    group.set_phase("step 1, forward");
    while (group.rank() == 1 && !reported)
      std::this_thread::sleep_for(1ms);
    gather(group, 3, "head");
  });
  CHECK_FALSE(errors[0]);
  CHECK_FALSE(errors[1]);
  CHECK_THAT(notices,
             Contains("[rank 0] [comm] waiting for") && Contains("all-gather \"head\"") &&
                 Contains("for rank 1"));
}

TEST_CASE("a communicator delivers what is pending before it leaves", "[comm][COM09]") {
  std::vector<float> sent(250000, 3.0F);
  std::vector<float> received(sent.size());
  const auto view = [](std::vector<float>& values) {
    return View{reinterpret_cast<std::byte*>(values.data()),
                static_cast<std::int64_t>(values.size()),
                DType::kFloat32};
  };
  const std::array<View, 2> views = {view(sent), view(received)};
  run_group(2, [&](Communicator& group) {
    if (group.rank() == 1) std::this_thread::sleep_for(50ms);
    const Event event = group.broadcast(
        {&views[static_cast<std::size_t>(group.rank())], 1}, 0, {"late"}, group.stream());
    if (group.rank() == 1) event.wait();
  });
  CHECK(received == sent);
}

TEST_CASE("wrong calls are refused with both numbers", "[comm]") {
  const GroupErrors errors = collect_group_errors(1, {}, [](Communicator& group) {
    std::vector<float> values(10);
    const View whole = {reinterpret_cast<std::byte*>(values.data()), 10, DType::kFloat32};
    const ReducePart part = {.whole = whole, .slice_count = 12, .sum = whole};
    group.reduce_scatter({&part, 1}, {"short"}, group.stream()).wait();
  });
  CHECK(is_a<UsageError>(errors[0]));
  CHECK_THAT(message_of(errors[0]), Contains("whole has 10 elements, needs 12 (1 slices of 12)"));
}
