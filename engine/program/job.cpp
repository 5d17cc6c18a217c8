#include "engine/program/job.hpp"

#include "comm/meeting_point.hpp"
#include "engine/program/first_failure.hpp"
#include "engine/program/job_guard.hpp"
#include "engine/program/launcher_output.hpp"
#include "engine/program/rank_environment.hpp"
#include "engine/program/rank_limits.hpp"
#include "engine/program/rank_process.hpp"

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
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

// After a signal was passed on a rank's failure is likely the signal's doing, and others may still
// save what they have: they have this long before the launcher ends them.
constexpr auto kGraceAfterSignal = std::chrono::seconds(30);

// The same signal again means to kill only so long after the first: timeout(1), for one, sends each
// twice at once.
constexpr auto kTwice = std::chrono::seconds(1);

// The exit code where the rank at fault has none of its own.
constexpr int kStopped = 1;

class Job {
 public:
  explicit Job(const JobOptions& options);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job();
  int run();

 private:
  void block_signals();
  void start(const MeetingPoint& meeting_point, int rank);
  void wait_for_something() const;
  bool take_signals();
  void pass_on(int signal);
  void collect_ended();
  void escalate();
  void renew_guard();
  void read_output();
  void finish_output();
  void deliver_output();
  [[nodiscard]] bool is_running() const;
  [[nodiscard]] LauncherOutput& errors() { return own_errors_ ? *own_errors_ : output_; }

  const JobOptions& options_;
  JobGuard guard_;
  int signals_ = -1;
  LauncherOutput output_{STDOUT_FILENO};
  std::optional<LauncherOutput> own_errors_;  // if stderr goes elsewhere
  std::vector<Rank> ranks_;
  std::int64_t looks_ = 0;
  int passed_on_ = 0;                  // the last signal that was passed on
  Clock::time_point passed_on_since_;  // the first of its kind in a row
  std::optional<Clock::time_point> patience_ends_;
  bool has_terminated_ = false;
};

Job::Job(const JobOptions& options) : options_(options) {
  if (!is_same_output(STDOUT_FILENO, STDERR_FILENO)) own_errors_.emplace(STDERR_FILENO);
}

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
    (void)take_signals();
    collect_ended();
    escalate();
    renew_guard();
  }
  finish_output();
  const Rank* failed = find_first_failure(ranks_);
  if (failed != nullptr && passed_on_ == 0)
    errors().add(report_of(*failed, failed - ranks_.data()));
  deliver_output();
  if (failed == nullptr) return 0;
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
    errors().add("sifr run: fewer cores than ranks, so --bind-cores has no effect\n");
  }
  ranks_.push_back({start_rank(start), RankOutput(rank, output_), RankOutput(rank, errors())});
}

void Job::wait_for_something() const {
  std::vector<pollfd> entries = {{signals_, POLLIN, 0}, output_.readiness()};
  if (own_errors_) entries.push_back(own_errors_->readiness());
  for (const Rank& rank : ranks_) {
    if (rank.ended) continue;
    if (rank.output.has_room()) entries.push_back({rank.process.output, POLLIN, 0});
    if (rank.errors.has_room()) entries.push_back({rank.process.errors, POLLIN, 0});
  }
  const auto left =
      patience_ends_ ? *patience_ends_ - Clock::now() : Clock::duration(std::chrono::seconds(1));
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
  poll(entries.data(),
       entries.size(),
       static_cast<int>(std::clamp<std::int64_t>(milliseconds + 1, 0, 1000)));
}

/// True if one of them was meant for the job.
bool Job::take_signals() {
  signalfd_siginfo info = {};
  bool was_meant = false;
  while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGCHLD) continue;
    pass_on(static_cast<int>(info.ssi_signo));
    was_meant = true;
  }
  return was_meant;
}

void Job::pass_on(int signal) {
  const auto now = Clock::now();
  const bool is_repeated =
      signal == passed_on_ && signal != SIGHUP && now - passed_on_since_ >= kTwice;
  guard_.send(is_repeated ? SIGKILL : signal);
  if (signal != passed_on_) passed_on_since_ = now;
  passed_on_ = signal;
}

void Job::collect_ended() {
  for (Rank& rank : ranks_) {
    int status = 0;
    if (rank.ended || waitpid(rank.process.id, &status, WNOHANG) != rank.process.id) continue;
    rank.ended.emplace(status);
    rank.ended_by_itself = !has_terminated_;
    if (!rank.ended->is_success() && !patience_ends_)
      patience_ends_ = Clock::now() + (passed_on_ == 0 ? kGrace : kGraceAfterSignal);
  }
}

void Job::escalate() {
  if (!patience_ends_ || Clock::now() < *patience_ends_) return;
  if (passed_on_ != 0 && !has_terminated_)
    errors().add("sifr run: a rank has failed after the signal; stopping those that still run\n");
  guard_.send(has_terminated_ ? SIGKILL : SIGTERM);
  has_terminated_ = true;
  patience_ends_ = Clock::now() + kGrace;
}

void Job::renew_guard() {
  if (is_running() && guard_.renew())
    errors().add("sifr run: the process that guards the job was killed; started another\n");
}

void Job::read_output() {
  for (Rank& rank : ranks_) {
    rank.output.read_from(rank.process.output);
    rank.errors.read_from(rank.process.errors);
    if (rank.process.errors < 0) rank.silent_since = std::min(rank.silent_since, looks_);
  }
  output_.write();
  if (own_errors_) own_errors_->write();
}

void Job::finish_output() {
  for (Rank& rank : ranks_) {
    rank.output.read_rest(rank.process.output);
    rank.errors.read_rest(rank.process.errors);
    if (rank.process.errors < 0) rank.silent_since = std::min(rank.silent_since, looks_);
    rank.output.finish();
    rank.errors.finish();
  }
}

/// Waits for the reader, but not where somebody wants the job to end.
void Job::deliver_output() {
  patience_ends_.reset();
  if (passed_on_ != 0) patience_ends_ = Clock::now() + kGrace;
  while (true) {
    output_.write();
    errors().write();
    if (output_.is_empty() && errors().is_empty()) return;
    if (patience_ends_ && Clock::now() >= *patience_ends_) return;
    wait_for_something();
    if (take_signals()) return;
  }
}

bool Job::is_running() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.ended; });
}

}  // namespace

int run_job(const JobOptions& options) {
  check_limits(options.ranks);
  try {
    return Job(options).run();
  } catch (const std::system_error& error) {
    throw explained(error, options.ranks);
  }
}

}  // namespace sifr::program
