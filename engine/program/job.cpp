#include "engine/program/job.hpp"

#include "comm/meeting_point.hpp"
#include "engine/program/first_failure.hpp"
#include "engine/program/job_guard.hpp"
#include "engine/program/rank_environment.hpp"
#include "engine/program/rank_process.hpp"

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <poll.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace sifr::program {
namespace {

using Clock = std::chrono::steady_clock;

// After a rank has failed the others have this long to end by themselves, telling why, then as long
// after SIGTERM.
constexpr auto kGrace = std::chrono::seconds(3);

// The exit code where the rank at fault has none of its own.
constexpr int kStopped = 1;

class Job {
 public:
  explicit Job(const JobOptions& options) : options_(options) {}
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job();
  int run();

 private:
  void block_signals();
  void start(const MeetingPoint& meeting_point, int rank);
  void wait_for_something() const;
  void take_signals();
  void pass_on(int signal);
  void collect_ended();
  void escalate();
  void renew_guard();
  void read_output();
  [[nodiscard]] bool is_running() const;
  void report_failure(const Rank& rank) const;

  const JobOptions& options_;
  JobGuard guard_;
  int signals_ = -1;
  std::vector<Rank> ranks_;
  std::int64_t looks_ = 0;
  int passed_on_ = 0;  // the last signal that was passed on
  std::optional<Clock::time_point> patience_ends_;
  bool has_terminated_ = false;
};

Job::~Job() {
  for (const Rank& rank : ranks_) {
    for (const int descriptor : {rank.process.output, rank.process.errors}) {
      if (descriptor >= 0) close(descriptor);
    }
  }
  if (signals_ >= 0) close(signals_);
}

int Job::run() {
  block_signals();
  const MeetingPoint meeting_point(options_.ranks, options_.port);
  for (int r = 0; r < options_.ranks; ++r)
    start(meeting_point, r);
  while (is_running()) {
    wait_for_something();
    ++looks_;
    read_output();
    take_signals();
    collect_ended();
    escalate();
    renew_guard();
  }
  read_output();
  for (Rank& rank : ranks_) {
    rank.output.finish();
    rank.errors.finish();
  }
  const Rank* failed = find_first_failure(ranks_);
  if (failed == nullptr) return 0;
  if (passed_on_ == 0) report_failure(*failed);
  return failed->ended_by_itself ? failed->ended->code() : kStopped;
}

void Job::block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD})
    sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
}

void Job::start(const MeetingPoint& meeting_point, int rank) {
  RankStart start;
  start.command = options_.command;
  start.group = guard_.group();
  start.is_bound = options_.bind_cores && share_of_cores(rank, options_.ranks, start.cores);
  start.environment = rank_environment(meeting_point, rank, options_.ranks, start.is_bound);
  if (options_.bind_cores && !start.is_bound && rank == 0) {
    fmt::print(stderr, "sifr run: fewer cores than ranks, so --bind-cores has no effect\n");
  }
  ranks_.push_back({start_rank(start), RankOutput(rank, stdout), RankOutput(rank, stderr)});
}

void Job::wait_for_something() const {
  std::vector<pollfd> entries = {{signals_, POLLIN, 0}};
  for (const Rank& rank : ranks_) {
    if (rank.ended) continue;
    entries.push_back({rank.process.output, POLLIN, 0});
    entries.push_back({rank.process.errors, POLLIN, 0});
  }
  const auto left =
      patience_ends_ ? *patience_ends_ - Clock::now() : Clock::duration(std::chrono::seconds(1));
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
  poll(entries.data(),
       entries.size(),
       static_cast<int>(std::clamp<std::int64_t>(milliseconds + 1, 0, 1000)));
}

void Job::take_signals() {
  signalfd_siginfo info = {};
  while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGCHLD) pass_on(static_cast<int>(info.ssi_signo));
  }
}

void Job::pass_on(int signal) {
  const bool is_repeated = passed_on_ == SIGINT && signal == SIGINT;
  guard_.send(is_repeated ? SIGKILL : signal);
  passed_on_ = signal;
}

void Job::collect_ended() {
  for (Rank& rank : ranks_) {
    int status = 0;
    if (rank.ended || waitpid(rank.process.id, &status, WNOHANG) != rank.process.id) continue;
    rank.ended.emplace(status);
    rank.ended_by_itself = !has_terminated_;
    // Those who were told to end do so in their own time.
    if (!rank.ended->is_success() && passed_on_ == 0 && !patience_ends_)
      patience_ends_ = Clock::now() + kGrace;
  }
}

void Job::escalate() {
  if (!patience_ends_ || Clock::now() < *patience_ends_) return;
  guard_.send(has_terminated_ ? SIGKILL : SIGTERM);
  has_terminated_ = true;
  patience_ends_ = Clock::now() + kGrace;
}

void Job::renew_guard() {
  if (is_running() && guard_.renew())
    fmt::print(stderr, "sifr run: the process that guards the job was killed; started another\n");
}

void Job::read_output() {
  std::array<char, 65536> bytes = {};
  const auto drain = [&bytes](int& descriptor, RankOutput& output) {
    ssize_t count = 0;
    while (descriptor >= 0 && (count = read(descriptor, bytes.data(), bytes.size())) > 0) {
      output.add({bytes.data(), static_cast<std::size_t>(count)});
    }
    if (descriptor >= 0 && count == 0)
      close(std::exchange(descriptor, -1));  // poll passes over it from now on
  };
  for (Rank& rank : ranks_) {
    drain(rank.process.output, rank.output);
    drain(rank.process.errors, rank.errors);
    if (rank.process.errors < 0) rank.silent_since = std::min(rank.silent_since, looks_);
  }
}

bool Job::is_running() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.ended; });
}

void Job::report_failure(const Rank& rank) const {
  const auto number = &rank - ranks_.data();
  const std::string end = rank.ended_by_itself
                              ? rank.ended->describe()
                              : "is named as the cause and did not end until it was stopped";
  fmt::print(stderr, "sifr run: rank {} {}; the others were stopped.\n", number, end);
  if (rank.errors.last_lines().empty()) return;
  fmt::print(stderr, "sifr run: the last lines of rank {}'s stderr:\n", number);
  for (const std::string& line : rank.errors.last_lines())
    fmt::print(stderr, "  {}\n", line);
}

}  // namespace

int run_job(const JobOptions& options) {
  return Job(options).run();
}

}  // namespace sifr::program
