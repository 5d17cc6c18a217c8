#include "comm/detail/unix_socket.hpp"
#include "comm/meeting_point.hpp"
#include "tests/comm/spawned.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

using namespace sifr::test;
using Catch::Matchers::Contains;

namespace {

using Variables = std::vector<std::vector<std::string>>;

/// Ranks with the variables of `sifr run`.
struct Job {
  explicit Job(int size, const std::string& scenario, const std::vector<std::string>& more = {})
      : meeting_point(size) {
    Variables variables;
    for (int r = 0; r < size; ++r) {
      variables.push_back(meeting_point.environment(r));
      variables.back().insert(variables.back().end(), more.begin(), more.end());
    }
    ranks = start_ranks(variables, scenario);
  }
  [[nodiscard]] std::vector<Spawned::Ended> wait() { return wait_all(ranks); }

  sifr::MeetingPoint meeting_point;
  std::vector<Spawned> ranks;
};

void check_all_succeed(const std::vector<Spawned::Ended>& ranks) {
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    INFO("rank " << r << ": " << ranks[r].errors);
    CHECK(ranks[r].code == 0);
  }
}

Variables torchrun_variables(int ranks, const std::string& port) {
  Variables all;
  const std::string run = sifr::detail::random_hex();  // or two runs of this test would meet
  for (int r = 0; r < ranks; ++r) {
    const std::string rank = std::to_string(r);
    const std::string size = std::to_string(ranks);
    all.push_back({"RANK=" + rank,
                   "WORLD_SIZE=" + size,
                   "LOCAL_RANK=" + rank,
                   "LOCAL_WORLD_SIZE=" + size,
                   "MASTER_ADDR=localhost",
                   "MASTER_PORT=" + port,
                   "TORCHELASTIC_RUN_ID=" + run});
  }
  return all;
}

}  // namespace

TEST_CASE("processes move any size as the plain loop does", "[comm]") {
  for (const int ranks : {1, 2, 3, 4, 5})
    check_all_succeed(Job(ranks, "sweep").wait());
}

TEST_CASE("tensors outside shared memory pass through the ring in pieces", "[comm]") {
  check_all_succeed(Job(3, "stage-much").wait());
}

TEST_CASE("processes started as torchrun does find each other without a token", "[comm]") {
  auto ranks = start_ranks(torchrun_variables(3, "29500"), "train-3");
  check_all_succeed(wait_all(ranks));
}

TEST_CASE("jobs at the same time do not meet", "[comm][COM08]") {
  auto first = start_ranks(torchrun_variables(2, "29501"), "train-3");
  auto second = start_ranks(torchrun_variables(2, "29502"), "train-3");
  Job third(2, "train-3");
  Job fourth(2, "train-3");
  for (auto* ranks : {&first, &second, &third.ranks, &fourth.ranks})
    check_all_succeed(wait_all(*ranks));
}

TEST_CASE("a process that sends and leaves delivers first", "[comm][COM09]") {
  check_all_succeed(Job(2, "send-and-leave").wait());
}

TEST_CASE("processes that make different calls are told both sides", "[comm]") {
  for (const auto& ended : Job(3, "mismatch").wait()) {
    CHECK(ended.code == 1);
    CHECK_THAT(
        ended.errors,
        Contains("rank 0 called barrier \"right\"") && Contains("rank 1 called barrier \"left\""));
  }
}

TEST_CASE("a process that fails tells its peers why", "[comm][COM17]") {
  const auto all = Job(3, "throw").wait();
  CHECK_THAT(all[1].errors, Contains("the batch is empty"));
  for (const std::size_t r : {0U, 2U})
    CHECK_THAT(all[r].errors, Contains("rank 1 failed: the batch is empty"));
}

TEST_CASE("a stopped process is reported, then ends the group at the deadline", "[comm][COM18]") {
  Job job(3, "train", {"COMM_RANK_TIMEOUT=4000", "COMM_RANK_REPORT=300"});
  job.ranks[0].wait_for("ready");
  job.ranks[2].send(SIGSTOP);
  const auto first = job.ranks[0].wait();
  const auto second = job.ranks[1].wait();
  job.ranks[2].send(SIGCONT);
  const auto stopped = job.ranks[2].wait();
  for (const auto& ended : {first, second, stopped}) {
    CHECK(ended.code == 1);
    CHECK_THAT(ended.errors, Contains("for rank 2 (last collective: number"));
  }
  CHECK_THAT(first.errors + second.errors,
             Contains("waiting for ") && Contains("gives up after 4.0 s"));
}

TEST_CASE("a rank that never comes is named when the group is made", "[comm]") {
  const sifr::MeetingPoint meeting_point(3);
  Variables two = {meeting_point.environment(0), meeting_point.environment(2)};
  for (auto& one : two)
    one.insert(one.end(), {"COMM_RANK_TIMEOUT=3000", "COMM_RANK_REPORT=100"});
  const std::string rank = program_folder() + "/comm_rank train-3";
  std::vector<Spawned> ranks;  // rank 2 waits for both of the others at first
  ranks.emplace_back(std::vector<std::string>{"sh", "-c", "sleep 0.5; exec " + rank}, two[0]);
  ranks.emplace_back(std::vector<std::string>{"sh", "-c", "exec " + rank}, two[1]);
  const auto ended = wait_all(ranks);
  for (const auto& one : ended) {
    CHECK(one.code == 1);
    CHECK_THAT(one.errors, Contains("waited 3.0 s at the store") && Contains(" for rank 1\n"));
  }
  CHECK_THAT(ended[1].errors,
             Contains("waiting for rank 0, 1; gives") && Contains("waiting for rank 1; gives"));
}
