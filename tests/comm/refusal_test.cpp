#include "comm/detail/host_links.hpp"
#include "comm/detail/store_client.hpp"
#include "comm/detail/store_server.hpp"
#include "comm/detail/unix_socket.hpp"
#include "comm/meeting_point.hpp"
#include "tests/comm/spawned.hpp"
#include "tests/support/child.hpp"

#include <catch2/catch.hpp>
#include <sys/socket.h>

#include <arpa/inet.h>
#include <chrono>
#include <csignal>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

// What the system, or a stranger, denies to a group of processes.
using namespace sifr;
using namespace sifr::detail;
using namespace sifr::test;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

const std::string kToken(32, 'a');

DescriptorHandle make_stranger() {
  return DescriptorHandle(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

void connect_to(const StoreServer& server, const DescriptorHandle& stranger) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(connect(stranger.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
          0);
}

bool is_closed_within(const DescriptorHandle& stranger, std::chrono::milliseconds patience) {
  pollfd entry = {stranger.get(), POLLIN, 0};
  return poll(&entry, 1, static_cast<int>(patience.count())) == 1;
}

void check_store_serves(const StoreServer& server) {
  StoreClient client("127.0.0.1:" + std::to_string(server.port()), kToken, {0, 1}, {});
  CHECK(client.gather("alone", "me") == std::vector<std::string>{"me"});
  client.leave();
}

std::vector<Spawned::Ended> run_ranks(int count, const std::string& scenario) {
  const MeetingPoint meeting_point(count);
  std::vector<std::vector<std::string>> environments;
  for (int r = 0; r < count; ++r)
    environments.push_back(meeting_point.environment(r));
  auto ranks = start_ranks(environments, scenario);
  return wait_all(ranks);
}

}  // namespace

TEST_CASE("strangers that never show the token are closed, and keep no rank out", "[comm]") {
  const StoreServer server(1, kToken, 0, {.strangers = 2, .patience = 1s});
  std::vector<DescriptorHandle> strangers;
  for (int i = 0; i < 5; ++i) {
    strangers.push_back(make_stranger());
    connect_to(server, strangers.back());
  }
  check_store_serves(server);
  for (const DescriptorHandle& stranger : strangers)
    CHECK(is_closed_within(stranger, 5s));
}

TEST_CASE("more open files than a user may have on their way are sent as they are received",
          "[comm]") {
  const std::string text = text_from_child([] {
    become_nobody();
    set_limit(RLIMIT_NOFILE, 64);
    const std::string name = "sifr-test-" + random_hex();
    const UnixListener listener(name);
    const UnixSocket sender = UnixSocket::connect(name);
    const KeepWaiting wait = [] {};
    const UnixSocket receiver = listener.accept(wait);
    std::thread late([&] {
      for (int i = 0; i < 20; ++i) {
        std::this_thread::sleep_for(5ms);
        std::byte message = {};
        (void)receiver.receive({&message, 1}, 40, wait);
      }
    });
    const std::vector<int> files(40, STDOUT_FILENO);
    const std::string thrown = text_thrown<std::system_error>([&] {
      for (int i = 0; i < 20; ++i)
        sender.send(std::vector<std::byte>(1), files, wait);
    });
    if (thrown != "no exception") _exit(write(STDERR_FILENO, thrown.data(), thrown.size()) < 0);
    late.join();
    return thrown;
  });
  CHECK(text == "no exception");
}

#if !defined(__SANITIZE_ADDRESS__)  // UBSan, which is built with it, looks at memory through a pipe
static double processor_seconds() {
  rusage used = {};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

TEST_CASE("a store without a free descriptor waits for one without using the processor", "[comm]") {
  const StoreServer server(1, kToken, 0);
  const DescriptorHandle stranger = make_stranger();
  const double before = processor_seconds();
  rlimit former = {};
  getrlimit(RLIMIT_NOFILE, &former);
  set_limit(RLIMIT_NOFILE, 3);
  connect_to(server, stranger);
  std::this_thread::sleep_for(500ms);
  set_limit(RLIMIT_NOFILE, former.rlim_cur);
  CHECK(processor_seconds() - before < 0.25);
  check_store_serves(server);
}

TEST_CASE("memory that the system refuses to share is told by the rank's own kind of error",
          "[comm]") {
  const auto few_files = run_ranks(2, "no-open-file-left");
  CHECK_THAT(few_files[1].errors,
             Contains("DeviceError: weights of 1.00 MiB in shared memory: memfd_create: Too many "
                      "open files (ulimit -n)"));
  CHECK_THAT(few_files[0].errors, Contains("rank 1 failed: weights of 1.00 MiB"));
  const auto few_taken = run_ranks(2, "no-open-file-left-to-receive");
  CHECK_THAT(few_taken[1].errors, Contains("DeviceError: ") && Contains("Too many open files"));
}
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they take terabytes
TEST_CASE("shared memory beyond the address space is OutOfMemory", "[comm]") {
  const auto ended = run_ranks(2, "no-address-space-left");
  CHECK_THAT(ended[1].errors,
             Contains("OutOfMemory: weights of 64.00 MiB in shared memory: mmap") &&
                 Contains("refused: 64.00 MiB for weights"));
}
#endif

TEST_CASE("memory that the machine has not for all ranks together is OutOfMemory on each",
          "[comm]") {
  for (const auto& ended : run_ranks(2, "more-than-half-of-the-machine")) {
    CHECK_THAT(ended.errors,
               Contains("OutOfMemory: weights needs ") &&
                   Contains(" on the 2 ranks of this machine, which has "));
  }
}

TEST_CASE("who waits for open files of a process that has ended is told its rank", "[comm]") {
  const std::string name = "sifr-test-" + random_hex();
  const KeepWaiting wait = [] {};
  const UnixListener listener(name);
  std::optional<HostLinks> first = HostLinks::follow(name, 1, 3);
  std::optional<HostLinks> second = HostLinks::follow(name, 2, 3);
  std::optional<HostLinks> leader = HostLinks::lead(listener, 3, wait);
  const auto rank_missed_by = [&](const HostLinks& links) {
    try {
      (void)links.exchange(STDERR_FILENO, wait);
    } catch (const PeerGone& gone) {
      return gone.rank();
    }
    return -1;
  };
  second.reset();
  int missed_by_first = -1;
  std::thread waits([&] { missed_by_first = rank_missed_by(*first); });
  CHECK(rank_missed_by(*leader) == 2);
  leader.reset();
  waits.join();
  CHECK(missed_by_first == 0);
}

TEST_CASE("a rank that is killed while all take memory is the one whom the others name",
          "[comm][COM07]") {
  for (int round = 0; round < 4; ++round) {  // their watch may notice first, or their waiting
    const std::size_t victim = round % 2 == 0 ? 1 : 0;
    const auto ended = run_ranks(3, victim == 1 ? "rank-1-killed" : "rank-0-killed");
    for (std::size_t r = 0; r < ended.size(); ++r) {
      if (r == victim) {
        CHECK(ended[r].code == 128 + SIGSYS);
      } else {
        CHECK_THAT(ended[r].errors,
                   StartsWith("rank " + std::to_string(victim) + " died: process ") &&
                       Contains(" ended without leaving the group (last collective: "));
      }
    }
  }
}

TEST_CASE("a rank that may open few files cannot join, and says so as sifr's error", "[comm]") {
  for (int files = 4; files <= 16; ++files) {
    Spawned rank({"bash",
                  "-c",
                  "ulimit -n " + std::to_string(files) + "; exec " + program_folder() +
                      "/comm_rank train-3"},
                 {"RANK=0",
                  "WORLD_SIZE=2",
                  "MASTER_ADDR=localhost",
                  "MASTER_PORT=29507",
                  "TORCHELASTIC_RUN_ID=" + random_hex(),
                  "COMM_RANK_TIMEOUT=100"});
    const auto ended = rank.wait();
    INFO(files << " open files: " << ended.errors);
    CHECK(ended.code != 0);  // the system may refuse to load the program
    CHECK_THAT(ended.errors, !Contains("not sifr's"));
  }
}
