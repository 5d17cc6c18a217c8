#include "comm/meeting_point.hpp"
#include "tests/comm/spawned.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace sifr::test;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

namespace {

Spawned start_sifr(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program_folder() + "/sifr");
  return Spawned(std::move(arguments));
}

/// A program of this build as a word of a shell's command.
std::string quoted(const std::string& program) {
  return "'" + program_folder() + "/" + program + "'";
}

Spawned start_job(int ranks, const std::string& scenario) {
  return start_sifr(
      {"run", "--ranks", std::to_string(ranks), "--", program_folder() + "/comm_rank", scenario});
}

Spawned::Ended run_shell(int ranks,
                         const std::string& script,
                         const std::vector<std::string>& options = {}) {
  std::vector<std::string> arguments = {"run", "--ranks", std::to_string(ranks)};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"--", "sh", "-c", script});
  return start_sifr(arguments).wait();
}

/// The numbers that the ranks printed as lines "[r] text number".
std::vector<pid_t> printed_processes(const std::string& output, const std::string& text) {
  std::vector<pid_t> found;
  for (std::size_t at = 0; (at = output.find(text, at)) != std::string::npos; at += text.size()) {
    found.push_back(std::stoi(output.substr(at + text.size())));
  }
  return found;
}

const std::string kRankWithChild = "sleep 1000 & echo child $!; echo rank $$; wait";

template <class Condition>
void wait_until(const Condition& holds) {
  while (!holds())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // or ctest's limit
}

int occurrences(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
    ++count;
  return count;
}

/// Of two ranks of kRankWithChild.
void wait_for_end_of_all(const std::string& output) {
  auto processes = printed_processes(output, "rank ");
  const auto children = printed_processes(output, "child ");
  processes.insert(processes.end(), children.begin(), children.end());
  REQUIRE(processes.size() == 4);
  for (const pid_t process : processes)
    wait_until([process] { return has_ended(process); });
}

}  // namespace

TEST_CASE("sifr run starts ranks that train, and prefixes their lines", "[comm]") {
  const auto ended = start_job(3, "train-3").wait();
  CHECK(ended.code == 0);
  CHECK(ended.output == "[0] ready\n");
  CHECK(ended.errors.empty());
}

TEST_CASE("sifr run tells each rank who it is", "[comm]") {
  const auto ended = run_shell(2, "echo $SIFR_RANK of $SIFR_WORLD_SIZE; printf unfinished >&2");
  CHECK_THAT(ended.output, Contains("[0] 0 of 2\n") && Contains("[1] 1 of 2\n"));
  CHECK_THAT(ended.errors, Contains("[0] unfinished\n") && Contains("[1] unfinished\n"));
}

TEST_CASE("sifr run returns the first failing rank's code and stops the others", "[comm][COM07]") {
  struct Case {
    const char* scenario;
    int code;
    const char* text;
  };
  for (const Case& one :
       {Case{"exit-3", 3, "rank 1 ended with code 3"},
        Case{"segfault", 139, "rank 1 was killed by signal 11 (Segmentation fault)"},
        Case{"killed", 137, "rank 1 was killed by signal 9 (Killed): likely out of memory"}}) {
    const auto ended = start_job(3, one.scenario).wait();
    CHECK(ended.code == one.code);
    CHECK_THAT(ended.errors, Contains(one.text) && Contains("rank 1 died: process"));
  }
}

TEST_CASE("ranks end at once where another's process ends before it joins them", "[comm][COM07]") {
  for (const auto& [end, code] : {std::pair{"kill -KILL $$", 137}, std::pair{"exit 0", 1}}) {
    INFO(end);
    const auto ended = run_shell(
        3,
        "[ $SIFR_RANK = 1 ] && " + std::string(end) + "; exec " + quoted("comm_rank") + " train-3");
    CHECK(ended.code == code);
    for (const char* rank : {"[0] ", "[2] "}) {
      CHECK_THAT(ended.errors,
                 Contains(std::string(rank) + "rank 1 died: its process ended while the group"));
    }
  }
}

TEST_CASE("sifr run names the rank at fault, however long it takes to end", "[comm][COM07]") {
  struct Case {
    const char* scenario;
    int code;
    const char* text;
  };
  for (const Case& one :
       {Case{"throw-late", 1, "rank 1 ended with code 1"},
        Case{"exit-4-late", 4, "rank 1 ended with code 4"},
        Case{"segfault-late", 139, "rank 1 was killed by signal 11 (Segmentation fault)"},
        Case{"exit-3-with-heir", 3, "rank 1 ended with code 3"},
        Case{"leave", 5, "rank 1 ended with code 5"},
        Case{"never-end", 1, "rank 1 is named as the cause and did not end until it was"}}) {
    INFO(one.scenario);
    const auto ended = start_job(3, one.scenario).wait();
    CHECK(ended.code == one.code);
    CHECK_THAT(ended.errors, Contains(std::string("sifr run: ") + one.text));
  }
}

TEST_CASE("sifr run shows a cause once in full, and ends with who failed", "[comm][COM07]") {
  const auto ended = start_job(3, "throw-table").wait();
  CHECK(ended.code == 1);
  for (const char* line : {"[0] rank 1 failed: no room\n",
                           "[1] no room\n",
                           "[1]   weights  2 MiB\n",
                           "[2] rank 1 failed: no room\n"})
    CHECK_THAT(ended.errors, Contains(line));
  CHECK(occurrences(ended.errors, "weights  2 MiB") == 1);
  CHECK_THAT(ended.errors,
             EndsWith("sifr run: rank 1 ended with code 1; the others were stopped.\n"));
}

TEST_CASE("sifr run names a rank that ends with 0 amid the others' work", "[comm][COM07]") {
  for (const char* scenario : {"exit-0", "leave-early"}) {
    INFO(scenario);
    const auto ended = start_job(3, scenario).wait();
    CHECK(ended.code == 1);
    CHECK_THAT(ended.errors,
               EndsWith("sifr run: rank 1 ended with code 0 while its group was still at work; the "
                        "others were stopped.\n"));
  }
}

TEST_CASE("sifr run speaks of other ranks only where there are some", "[comm]") {
  CHECK(run_shell(1, "exit 3").errors == "sifr run: rank 0 ended with code 3.\n");
}

TEST_CASE("ranks that end well may print what they like", "[comm]") {
  CHECK(run_shell(2, "echo rank $((1 - SIFR_RANK)) failed: as it should").code == 0);
}

TEST_CASE("a limit on the size of files is named where shared memory meets it", "[comm]") {
  struct Case {
    const char* blocks;
    const char* text;
  };
  for (const Case& one : {Case{"200", "cannot reach its peers"},
                          Case{"1000", "weights of 0.62 MiB in shared memory"}}) {
    const std::string start = std::string("ulimit -f ") + one.blocks + "; exec ";
    const auto ended = run_shell(8, start + quoted("comm_rank") + " train-3");
    CHECK(ended.code == 1);
    CHECK_THAT(ended.errors,
               Contains(one.text) && Contains("(ulimit -f)") && Contains("File too large"));
  }
}

TEST_CASE("a rank 0 that cannot make what the group shares tells the others why", "[comm]") {
  const std::string start = "[ $SIFR_RANK = 0 ] && ulimit -f 8; exec ";
  const auto ended = run_shell(3, start + quoted("comm_rank") + " train-3");
  CHECK(ended.code == 1);
  for (const char* rank : {"[0] ", "[1] ", "[2] "}) {
    CHECK_THAT(ended.errors, Contains(std::string(rank) + "rank 0 cannot reach its peers: "));
  }
}

TEST_CASE("sifr run goes on where its own output reaches a limit", "[comm]") {
  const std::string run = quoted("sifr") + " run --ranks 2 -- sh -c 'seq 1000; exit 7'";
  Spawned job({"bash", "-c", "ulimit -f 1; exec " + run});
  CHECK(job.wait().code == 7);
}

TEST_CASE("sifr run says what cannot be started", "[comm]") {
  const auto ended = start_sifr({"run", "--ranks", "1", "--", "/no/such/program"}).wait();
  CHECK(ended.code == 127);
  CHECK_THAT(ended.errors, Contains("cannot start /no/such/program: No such file or directory"));
}

TEST_CASE("sifr run refuses a port that is taken, and finds a free one by itself",
          "[comm][COM08]") {
  const sifr::MeetingPoint other(2);
  const auto ended = run_shell(1, "true", {"--port", std::to_string(other.port())});
  CHECK(ended.code == 2);
  CHECK_THAT(ended.errors,
             Contains("port " + std::to_string(other.port())) && Contains("name another one"));
  Spawned first = start_job(2, "train-3");
  Spawned second = start_job(2, "train-3");
  CHECK(first.wait().code == 0);
  CHECK(second.wait().code == 0);
}

TEST_CASE("sifr run passes signals on", "[comm]") {
  const std::string script =
      "trap 'echo ended; exit 130' INT; echo ready; while true; do sleep 0.05; done";
  Spawned job = start_sifr({"run", "--ranks", "2", "--", "bash", "-c", script});
  job.wait_for("[0] ready");
  job.wait_for("[1] ready");
  job.send(SIGINT);
  const auto ended = job.wait();
  CHECK(ended.code == 130);
  CHECK_THAT(ended.output, Contains("[0] ended") && Contains("[1] ended"));
}

TEST_CASE("a second SIGTERM kills ranks that ignore the first, with a stopped one among them",
          "[comm][COM07]") {
  const std::string script =
      "trap '' TERM; echo ready; [ $SIFR_RANK = 1 ] && kill -STOP $$; while :; do sleep 0.05; done";
  Spawned job = start_sifr({"run", "--ranks", "2", "--", "sh", "-c", script});
  job.wait_for("[0] ready");
  job.wait_for("[1] ready");
  wait_until([&job] {
    job.send(SIGTERM);
    return has_ended(job.id());
  });
  CHECK(job.wait().code == 137);
}

TEST_CASE("a job can be ended whose output nobody reads", "[comm][COM07]") {
  std::array<int, 2> ends = {};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  const std::string target = " > /proc/" + std::to_string(getpid()) + "/fd/";
  const std::string run = "exec " + quoted("sifr") + " run --ranks 2 -- yes";
  Spawned job({"sh", "-c", run + target + std::to_string(ends[1])});
  const auto is_full = [&ends] {
    pollfd entry = {ends[1], POLLOUT, 0};
    return poll(&entry, 1, 0) == 0;
  };
  wait_until(is_full);
  job.send(SIGTERM);
  CHECK(job.wait().code == 143);
  for (const int end : ends)
    close(end);
}

TEST_CASE("a reader that comes late gets every line", "[comm]") {
  const std::string run = quoted("sifr") + " run --ranks 2 -- seq 300000 2>&1";
  Spawned job({"bash", "-c", run + " | (sleep 0.5; exec wc -l)"});
  CHECK_THAT(job.wait().output, Contains("600000"));
}

TEST_CASE("a limit of open files that is too small is named", "[comm]") {
  const std::string run = quoted("sifr") + " run --ranks 2 -- true";
  Spawned job({"bash", "-c", "ulimit -n 10; exec " + run});
  const auto ended = job.wait();
  CHECK(ended.code == 2);
  CHECK_THAT(ended.errors, Contains("limit of open files (ulimit -n) is 10: 2 ranks need 26"));
}

TEST_CASE("nothing is left when the launcher is killed, not even what ranks have started",
          "[comm][COM07]") {
  Spawned job = start_sifr({"run", "--ranks", "2", "--", "sh", "-c", kRankWithChild});
  job.wait_for("[0] rank");
  job.wait_for("[1] rank");
  job.send(SIGKILL);
  wait_for_end_of_all(job.wait().output);
}

TEST_CASE("a guard that is killed has a successor", "[comm][COM07]") {
  Spawned job = start_sifr({"run", "--ranks", "2", "--", "sh", "-c", kRankWithChild});
  job.wait_for("[0] rank");
  job.wait_for("[1] rank");
  const pid_t first = children_of(job.id()).front();
  kill(first, SIGKILL);
  wait_until([&] { return occurrences(job.errors(), "guards the job was killed") == 1; });
  const pid_t second = children_of(job.id()).back();
  CHECK(second != first);
  kill(second, SIGKILL);
  wait_until([&] { return occurrences(job.errors(), "guards the job was killed") == 2; });
  job.send(SIGKILL);
  wait_for_end_of_all(job.wait().output);
}

TEST_CASE("a job whose guard was killed ends as any other", "[comm][COM07]") {
  const std::string script = "trap 'exit 6' USR1; echo up; while :; do sleep 0.05; done";
  Spawned job = start_sifr({"run", "--ranks", "2", "--", "sh", "-c", script});
  job.wait_for("[0] up");
  job.wait_for("[1] up");
  const std::vector<pid_t> children = children_of(job.id());
  kill(children.front(), SIGKILL);
  wait_until([&] { return occurrences(job.errors(), "guards the job was killed") == 1; });
  for (const std::size_t rank : {1U, 2U})
    kill(children.at(rank), SIGUSR1);
  CHECK(job.wait().code == 6);
}

TEST_CASE("sifr run gives each rank its own cores", "[comm]") {
  const std::string nproc = "unset OMP_NUM_THREADS OMP_THREAD_LIMIT; nproc";  // which obeys them
  const auto one = run_shell(1, nproc);
  const int cores = std::stoi(one.output.substr(4));
  const auto all = run_shell(cores, nproc, {"--bind-cores"});
  for (int r = 0; r < cores; ++r)
    CHECK_THAT(all.output, Contains("[" + std::to_string(r) + "] 1\n"));
  CHECK_THAT(run_shell(cores + 1, nproc, {"--bind-cores"}).errors,
             Contains("fewer cores than ranks"));
}

TEST_CASE("OpenMP threads that outnumber the cores wait asleep unless told otherwise",
          "[comm][PRF08]") {
  const auto policy = [](const std::string& ranks, std::vector<std::string> variables) {
    variables.insert(variables.begin(),
                     {"env",
                      "-u",
                      "OMP_WAIT_POLICY",
                      "-u",
                      "GOMP_SPINCOUNT",
                      "-u",
                      "KMP_BLOCKTIME",
                      "-u",
                      "OMP_NUM_THREADS"});
    const std::string print = "echo \"policy=${OMP_WAIT_POLICY-none}.\"";
    variables.insert(
        variables.end(),
        {program_folder() + "/sifr", "run", "--ranks", ranks, "--", "sh", "-c", print});
    return Spawned(std::move(variables)).wait().output;
  };
  CHECK_THAT(policy("2", {}), Contains("[1] policy=PASSIVE."));
  CHECK_THAT(policy("2", {"OMP_NUM_THREADS=1000,2"}), Contains("[1] policy=PASSIVE."));
  CHECK_THAT(policy("2", {"OMP_WAIT_POLICY=active"}), Contains("[1] policy=active."));
  CHECK_THAT(policy("2", {"GOMP_SPINCOUNT=5"}), Contains("[1] policy=none."));
  CHECK_THAT(policy("1", {}), Contains("[0] policy=none."));
  CHECK_THAT(policy("1", {"OMP_NUM_THREADS=1"}), Contains("[0] policy=none."));
}

TEST_CASE("sifr run explains wrong arguments", "[comm]") {
  CHECK(start_sifr({"run", "--", "true"}).wait().code == 2);
  CHECK(start_sifr({"run", "--ranks", "0", "--", "true"}).wait().code == 2);
  CHECK(start_sifr({"run", "--ranks", "2"}).wait().code == 2);
  CHECK(start_sifr({"--help"}).wait().code == 0);
  CHECK(start_sifr({"runn", "--help"}).wait().code == 0);
  for (const std::string text : {" --version", " --help", " run --help"})
    CHECK(Spawned({"sh", "-c", quoted("sifr") + text + " > /dev/full"}).wait().code == 1);
  const auto errors = [](const std::vector<std::string>& arguments) {
    const auto ended = start_sifr(arguments).wait();
    CHECK(ended.code == 2);
    CHECK(occurrences("\n" + ended.errors, "\nsifr: ") == occurrences(ended.errors, "\n"));
    return ended.errors;
  };
  CHECK_THAT(errors({"runn", "--ranks", "2", "--", "true"}), Contains("--ranks"));
  CHECK_THAT(errors({"runn"}), Contains("'runn' is unknown; the commands are: run\n"));
  CHECK_THAT(errors({"run", "--rank", "2", "--", "true"}), Contains("'--rank' is unknown\n"));
  CHECK_THAT(errors({"run", "--rank", "2", "true", "x"}), Contains("'--rank' is unknown\n"));
  CHECK_THAT(errors({"run", "-n", "2", "true", "x", "--steps", "2"}),
             Contains("'--steps' is unknown") && Contains("put -- before the program"));
  CHECK_THAT(errors({"run", "-n", "2", "--cores", "--", "true", "--steps"}),
             Contains("'--cores' is unknown\n"));
  CHECK_THAT(errors({"run", "--ranks", "two", "--", "true"}),
             Contains("--ranks") && Contains("two"));
  CHECK_THAT(errors({}), Contains("subcommand"));
}
