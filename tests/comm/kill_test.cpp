// Kills jobs at random points of their lives and looks at how they end.
#include "tests/comm/spawned.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <csignal>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace sifr::test;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int kRanks = 3;

/// A job under the launcher, of which the process `victim` (a rank, or kRanks for the launcher) is
/// killed `delay` after the start, or after the first step began.
struct Killing {
  double seconds_to_end = 0;
  std::string phase;  // of the victim, as its peers tell it
  int code = 0;
};

Killing kill_one(int victim, bool is_at_work, std::chrono::milliseconds delay) {
  Spawned job({program_folder() + "/sifr",
               "run",
               "--ranks",
               std::to_string(kRanks),
               "--",
               program_folder() + "/comm_rank",
               "train"});
  std::vector<pid_t> processes;
  while ((processes = children_of(job.id())).size() < kRanks + 1)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (is_at_work) job.wait_for("[0] ready");
  std::this_thread::sleep_for(delay);
  const auto start = Clock::now();
  kill(victim == kRanks ? job.id() : processes[static_cast<std::size_t>(victim) + 1], SIGKILL);
  const Spawned::Ended ended = job.wait();
  for (const pid_t process : processes) {
    while (!has_ended(process))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // or ctest's limit
  }
  Killing result = {std::chrono::duration<double>(Clock::now() - start).count(),
                    "before the group was made",
                    ended.code};
  const std::size_t at = ended.errors.find("phase: ");
  if (victim == kRanks) {
    result.phase = "launcher";
  } else if (at != std::string::npos) {
    const std::string rest = ended.errors.substr(at + 7, ended.errors.find(')', at) - at - 7);
    result.phase = rest.substr(rest.find(',') == std::string::npos ? 0 : rest.find(',') + 2);
  }
  return result;
}

}  // namespace

TEST_CASE("a job ends soon and leaves nothing wherever one of its processes is killed",
          "[comm][slow][COM07]") {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> delays(0, 250);
  std::map<std::string, int> phases;
  std::map<int, int> histogram;  // of quarters of a second
  for (int i = 0; i < 24; ++i) {
    const int victim = i % (kRanks + 1);
    const Killing killed = kill_one(victim, i % 2 == 1, std::chrono::milliseconds(delays(random)));
    CHECK(killed.code == 137);
    ++phases[killed.phase];
    ++histogram[static_cast<int>(killed.seconds_to_end * 4)];
  }
  CHECK(phases.size() > 2);  // the launcher's, and two or more of ranks
  std::cout << "killed in:";
  for (const auto& [phase, count] : phases)
    std::cout << "  " << phase << ": " << count;
  std::cout << "\nseconds until the last process had ended:\n";
  for (const auto& [quarter, count] : histogram) {
    std::cout << "  " << quarter * 0.25 << " to " << (quarter + 1) * 0.25 << ": "
              << std::string(static_cast<std::size_t>(count), '#') << "\n";
  }
}

TEST_CASE("a rank that fails after a signal ends the others, a stopped one too",
          "[comm][slow][COM07]") {
  const std::string script =
      "[ $SIFR_RANK = 0 ] && trap 'exit 7' TERM || trap '' TERM; echo ready; "
      "[ $SIFR_RANK = 1 ] && kill -STOP $$; while :; do sleep 0.05; done";
  Spawned job({program_folder() + "/sifr", "run", "--ranks", "3", "--", "sh", "-c", script});
  for (const char* rank : {"[0] ready", "[1] ready", "[2] ready"})
    job.wait_for(rank);
  job.send(SIGTERM);
  const Spawned::Ended ended = job.wait();
  CHECK(ended.code == 7);
  CHECK(ended.errors.find("a rank has failed after the signal") != std::string::npos);
}
