// One rank of a job, as a process: comm_rank SCENARIO. Prints what goes wrong to stderr and exits
// with 1.
#include "comm/group.hpp"
#include "tests/comm/collective_sweep.hpp"
#include "tests/comm/refusals.hpp"
#include "tests/comm/run_group.hpp"

#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace sifr::test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kElements = 20000;

/// All collectives, in place and staged.
void sweep(Communicator& group) {
  sweep_exchange(group);
  sweep_reduce_scatter(group, Placing::kShared);
  sweep_all_gather(group, Placing::kShared);
  sweep_broadcast(group, Placing::kShared);
  expect(group.traffic().staged == 0, "shared memory is read in place");
  sweep_reduce_scatter(group, Placing::kPrivate);
  sweep_all_gather(group, Placing::kPrivate);
  sweep_broadcast(group, Placing::kPrivate);
  expect(group.size() == 1 || group.traffic().staged > 0, "private memory is staged");
}

/// A tensor of several pieces of the staging ring, and one rank that shares while the others do
/// not.
void stage_much(Communicator& group) {
  const std::int64_t slice = 2'500'000;
  const SharedBuffer shared = group.allocate(slice * group.size() * 4, Purpose::kGradients);
  std::vector<float> own(static_cast<std::size_t>(slice * group.size()));
  const View whole = {group.rank() == 0 ? shared.data() : reinterpret_cast<std::byte*>(own.data()),
                      slice * group.size(),
                      DType::kFloat32};
  for (std::int64_t i = 0; i < whole.count; ++i)
    whole.as<float>()[i] = static_cast<float>(i % 1000 + group.rank());
  std::vector<float> sum(static_cast<std::size_t>(slice));
  const ReducePart part = {
      .whole = whole,
      .slice_count = slice,
      .sum = {reinterpret_cast<std::byte*>(sum.data()), slice, DType::kFloat32}};
  for (int i = 0; i < 2; ++i)
    group.reduce_scatter({&part, 1}, {"large"}, group.stream()).wait();
  const int ranks = group.size();
  for (std::int64_t i = 0; i < slice; ++i) {
    const auto index = (group.rank() * slice + i) % 1000;
    const std::int64_t wanted = ranks * index + ranks * (ranks - 1) / 2;
    expect(sum[static_cast<std::size_t>(i)] == static_cast<float>(wanted),
           "element " + std::to_string(i));
  }
  expect(group.traffic().staged == (group.rank() == 0 ? 0 : 2 * slice * 4 * (ranks - 1)),
         "staged bytes");
}

/// The steps of a training without the arithmetic, until somebody ends it. Says "ready" once it
/// runs.
void train(Communicator& group, int steps) {
  const SharedBuffer weights = group.allocate(kElements * group.size() * 4, Purpose::kWeights);
  const SharedBuffer gradients = group.allocate(kElements * group.size() * 4, Purpose::kGradients);
  const View whole = {weights.data(), kElements * group.size(), DType::kFloat32};
  const View slot = whole.slice(group.rank() * kElements, kElements);
  const GatherPart gather = {slot, whole};
  const ReducePart reduce = {.whole = ConstView{gradients.data(), whole.count, whole.dtype},
                             .slice_count = kElements,
                             .sum = slot};
  if (group.rank() == 0) std::cout << "ready" << std::endl;
  for (int step = 0; step < steps; ++step) {
    const std::string at = "step " + std::to_string(step);
    group.set_phase(at + ", forward");
    group.all_gather({&gather, 1}, {"block.0"}, group.stream()).wait();
    group.set_phase(at + ", backward");
    group.reduce_scatter({&reduce, 1}, {"block.0"}, group.stream()).wait();
    group.set_phase(at + ", update");
    group.barrier({"end of step"});
  }
}

/// Three ranks, of which rank 1 ends in the second step by `end`.
void end_early(Communicator& group, const std::function<void()>& end) {
  train(group, 2);
  if (group.rank() == 1) end();
  train(group, 1000000);
}

/// As end_early, but the others have ended long before: rank 1 tells them first, as a program does
/// that catches an exception, and takes its time to print or end.
void end_late(Communicator& group, const std::function<void()>& end) {
  end_early(group, [&] {
    group.abort("the batch is empty");
    std::this_thread::sleep_for(1s);
    end();
  });
}

/// Rank 1 leaves in good order and fails while it ends.
void leave(Communicator& group) {
  train(group, 2);
  if (group.rank() != 1) train(group, 1000000);
  std::atexit([] {
    std::this_thread::sleep_for(1s);
    _exit(5);
  });
}

/// Keeps this process's streams open beyond its end.
void start_heir() {
  expect(std::system("sleep 2 &") == 0, "a child");
}

/// Rank 0 sends and leaves at once, rank 1 comes late.
void send_and_leave(Communicator& group) {
  static std::vector<float> values(
      250000, group.rank() == 0 ? 7.0F : 0.0F);  // lives until the program ends
  static const View view = {reinterpret_cast<std::byte*>(values.data()), 250000, DType::kFloat32};
  if (group.rank() == 1) std::this_thread::sleep_for(300ms);
  const Event event = group.broadcast({&view, 1}, 0, {"message"}, group.stream());
  if (group.rank() == 0) return;
  event.wait();
  expect(values.front() == 7.0F && values.back() == 7.0F, "the whole message");
}

using Scenario = std::function<void(Communicator&)>;

std::map<std::string, Scenario> scenarios() {
  return {
      {"sweep", sweep},
      {"stage-much", stage_much},
      {"train", [](Communicator& group) { train(group, 1000000); }},
      {"train-3", [](Communicator& group) { train(group, 3); }},
      {"exit-0", [](Communicator& group) { end_early(group, [] { std::exit(0); }); }},
      {"exit-3", [](Communicator& group) { end_early(group, [] { _exit(3); }); }},
      {"segfault",
       [](Communicator& group) {
         end_early(group, [] {
           std::signal(SIGSEGV, SIG_DFL);  // a sanitizer has its own
           raise(SIGSEGV);
         });
       }},
      {"killed", [](Communicator& group) { end_early(group, [] { raise(SIGKILL); }); }},
      {"throw",
       [](Communicator& group) {
         end_early(group, [] { throw std::runtime_error("the batch is empty"); });
       }},
      {"throw-table",
       [](Communicator& group) {
         end_early(group, [] { throw std::runtime_error("no room\n  weights  2 MiB"); });
       }},
      {"throw-late",
       [](Communicator& group) {
         end_late(group, [] { throw std::runtime_error("the batch is empty"); });
       }},
      {"exit-4-late", [](Communicator& group) { end_late(group, [] { _exit(4); }); }},
      {"segfault-late",
       [](Communicator& group) {
         end_late(group, [] {
           std::signal(SIGSEGV, SIG_DFL);
           raise(SIGSEGV);
         });
       }},
      {"never-end",
       [](Communicator& group) {
         end_late(group, [] { std::this_thread::sleep_for(std::chrono::hours(1)); });
       }},
      {"exit-3-with-heir",
       [](Communicator& group) {
         end_early(group, [] {
           start_heir();
           _exit(3);
         });
       }},
      {"leave", leave},
      {"leave-early", [](Communicator& group) { train(group, group.rank() == 1 ? 2 : 1000000); }},
      {"mismatch",
       [](Communicator& group) { group.barrier({group.rank() == 1 ? "left" : "right"}); }},
      {"send-and-leave", send_and_leave},
  };
}

int run(const std::string& scenario) {
  const auto device = make_host_device({});
  GroupOptions options;
  if (const char* seconds = std::getenv("COMM_RANK_TIMEOUT"))
    options.timeout = std::chrono::milliseconds(std::atoi(seconds));
  if (const char* seconds = std::getenv("COMM_RANK_REPORT"))
    options.report_after = std::chrono::milliseconds(std::atoi(seconds));
  auto group = make_process_group(*device, LaunchEnvironment::from_environment(), options);
  auto all = scenarios();
  all.merge(refusals());
  try {
    all.at(scenario)(*group);
  } catch (const std::exception& error) {
    group->abort(error.what());
    throw;
  }
  return 0;
}

}  // namespace
}  // namespace sifr::test

int main(int count, char** arguments) {
  try {
    return sifr::test::run(count > 1 ? arguments[1] : "");
  } catch (const sifr::Error& error) {
    std::cerr << error.message() << std::endl;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n(not sifr's)" << std::endl;
  }
  return 1;
}
