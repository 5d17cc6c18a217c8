#include "engine/program/job.hpp"

#include "comm/meeting_point.hpp"
#include "engine/program/first_failure.hpp"
#include "engine/program/job_guard.hpp"
#include "engine/program/job_signals.hpp"
#include "engine/program/launcher_output.hpp"
#include "engine/program/rank_environment.hpp"
#include "engine/program/rank_limits.hpp"
#include "engine/program/rank_process.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
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

// The exit code where the rank at fault has none of its own.
constexpr int kNoCode = 1;

class Job {
 public:
  explicit Job(const JobOptions& options);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job();
  int run();

 private:
  void start(int rank);
  void wait_for_something() const;
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
  JobSignals signals_;
  MeetingPoint meeting_point_;  // after the guard, which is forked without its thread
  LauncherOutput output_{STDOUT_FILENO};
  std::optional<LauncherOutput> own_errors_;  // if stderr goes elsewhere
  std::vector<Rank> ranks_;
  std::int64_t looks_ = 0;
  std::optional<Clock::time_point> patience_ends_;
  bool has_terminated_ = false;
};

Job::Job(const JobOptions& options)
    : options_(options), meeting_point_(options.ranks, options.port) {
  if (!is_same_output(STDOUT_FILENO, STDERR_FILENO)) own_errors_.emplace(STDERR_FILENO);
}

Job::~Job() {
  for (const Rank& rank : ranks_) {
    for (const int descriptor : {rank.process.output, rank.process.errors}) {
      if (descriptor >= 0) close(descriptor);
    }
  }
}

int Job::run() {
  for (int r = 0; r < options_.ranks; ++r)
    start(r);
  while (is_running()) {
    wait_for_something();
    ++looks_;
    read_output();
    signals_.pass_on_to(guard_);
    collect_ended();
    escalate();
    renew_guard();
  }
  finish_output();
  const Rank* failed = find_first_failure(ranks_);
  if (failed != nullptr && !signals_.have_come()) errors().add(report_of(*failed, ranks_));
  deliver_output();
  if (failed == nullptr) return 0;
  const bool has_code = failed->ended_by_itself && !failed->ended->is_success();
  return has_code ? failed->ended->code() : kNoCode;
}

void Job::start(int rank) {
  RankStart start;
  start.command = options_.command;
  start.group = guard_.group();
  start.is_bound = options_.bind_cores && share_of_cores(rank, options_.ranks, start.cores);
  start.environment = rank_environment(meeting_point_, rank, options_.ranks, start.is_bound);
  if (options_.bind_cores && !start.is_bound && rank == 0) {
    errors().add("sifr run: fewer cores than ranks, so --bind-cores has no effect\n");
  }
  ranks_.push_back({start_rank(start), RankOutput(rank, output_), RankOutput(rank, errors())});
}

void Job::wait_for_something() const {
  std::vector<pollfd> entries = {{signals_.descriptor(), POLLIN, 0}, output_.readiness()};
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

void Job::collect_ended() {
  for (int r = 0; r < options_.ranks; ++r) {
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    int status = 0;
    if (rank.ended || waitpid(rank.process.id, &status, WNOHANG) != rank.process.id) continue;
    rank.ended.emplace(status);
    rank.ended_by_itself = !has_terminated_;
    meeting_point_.rank_ended(r);
    if (!rank.ended->is_success() && !patience_ends_)
      patience_ends_ = Clock::now() + (signals_.have_come() ? kGraceAfterSignal : kGrace);
  }
}

void Job::escalate() {
  if (!patience_ends_ || Clock::now() < *patience_ends_) return;
  if (signals_.have_come() && !has_terminated_)
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
  if (signals_.have_come()) patience_ends_ = Clock::now() + kGrace;
  while (true) {
    output_.write();
    errors().write();
    if (output_.is_empty() && errors().is_empty()) return;
    if (patience_ends_ && Clock::now() >= *patience_ends_) return;
    wait_for_something();
    if (signals_.pass_on_to(guard_)) return;
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
