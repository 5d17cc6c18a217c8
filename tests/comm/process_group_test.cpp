#include "tests/comm/rank_processes.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

using Catch::Matchers::Contains;
using sifr::test::RankProcesses;

namespace {

void check_all_succeed(RankProcesses&& job) {
  int rank = 0;
  for (const auto& ended : job.wait()) {
    INFO("rank " << rank++ << ": " << ended.errors);
    CHECK(ended.code == 0);
  }
}

std::vector<std::vector<std::string>> torchrun_variables(int ranks, const std::string& port) {
  std::vector<std::vector<std::string>> all;
  for (int r = 0; r < ranks; ++r) {
    const std::string rank = std::to_string(r);
    const std::string size = std::to_string(ranks);
    all.push_back({"RANK=" + rank,
                   "WORLD_SIZE=" + size,
                   "LOCAL_RANK=" + rank,
                   "LOCAL_WORLD_SIZE=" + size,
                   "MASTER_ADDR=localhost",
                   "MASTER_PORT=" + port});
  }
  return all;
}

}  // namespace

TEST_CASE("processes move any size as the plain loop does", "[comm]") {
  for (const int ranks : {1, 2, 3, 4, 5})
    check_all_succeed(RankProcesses(ranks, "sweep"));
}

TEST_CASE("tensors outside shared memory pass through the ring in pieces", "[comm]") {
  check_all_succeed(RankProcesses(3, "stage-much"));
}

TEST_CASE("processes started as torchrun does find each other without a token", "[comm]") {
  check_all_succeed(RankProcesses(torchrun_variables(3, "29500"), "train-3"));
}

TEST_CASE("two jobs at once do not meet", "[comm][COM08]") {
  RankProcesses first(torchrun_variables(2, "29501"), "train-3");
  RankProcesses second(torchrun_variables(2, "29502"), "train-3");
  RankProcesses third(2, "train-3");
  RankProcesses fourth(2, "train-3");
  for (RankProcesses* job : {&first, &second, &third, &fourth})
    check_all_succeed(std::move(*job));
}

TEST_CASE("a process that sends and leaves delivers first", "[comm][COM09]") {
  check_all_succeed(RankProcesses(2, "send-and-leave"));
}

TEST_CASE("processes that make different calls are told both sides", "[comm]") {
  for (const auto& ended : RankProcesses(3, "mismatch").wait()) {
    CHECK(ended.code == 1);
    CHECK_THAT(ended.errors,
               Contains("rank 0 called exchange \"right\"") &&
                   Contains("rank 1 called exchange \"left\""));
  }
}

TEST_CASE("a process that fails tells its peers why", "[comm][COM17]") {
  const auto all = RankProcesses(3, "throw").wait();
  CHECK_THAT(all[1].errors, Contains("the batch is empty"));
  for (const std::size_t r : {0U, 2U})
    CHECK_THAT(all[r].errors, Contains("rank 1 failed: the batch is empty"));
}

TEST_CASE("the death of any process ends the group and is named", "[comm][COM07]") {
  for (const int victim : {0, 1, 2}) {
    RankProcesses job(3, "train");
    job.wait_until_ready();
    job.send(victim, SIGKILL);
    const auto all = job.wait();
    for (int r = 0; r < 3; ++r) {
      const auto& ended = all[static_cast<std::size_t>(r)];
      CHECK(ended.code == (r == victim ? 137 : 1));
      if (r != victim)
        CHECK_THAT(ended.errors, Contains("rank " + std::to_string(victim) + " died: process"));
    }
  }
}

TEST_CASE("a stopped process is reported, then ends the group at the deadline", "[comm][COM18]") {
  RankProcesses job(3, "train", {"COMM_RANK_TIMEOUT=1500", "COMM_RANK_REPORT=300"});
  job.wait_until_ready();
  job.send(2, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  job.send(2, SIGCONT);
  const auto all = job.wait();
  for (const auto& ended : all) {
    CHECK(ended.code == 1);
    CHECK_THAT(ended.errors, Contains("for rank 2 (last collective: number"));
  }
  CHECK_THAT(all[0].errors + all[1].errors, Contains("waiting for 0.3 s in"));
}

TEST_CASE("a rank that never comes is named when the group is made", "[comm]") {
  const sifr::MeetingPoint meeting_point(3);
  std::vector<std::vector<std::string>> two = {meeting_point.environment(0),
                                               meeting_point.environment(2)};
  for (auto& one : two)
    one.insert(one.end(), {"COMM_RANK_TIMEOUT=600", "COMM_RANK_REPORT=100"});
  for (const auto& ended : RankProcesses(two, "train-3").wait()) {
    CHECK(ended.code == 1);
    CHECK_THAT(ended.errors, Contains("waited 0.6 s at the store") && Contains("for rank 1"));
  }
}
