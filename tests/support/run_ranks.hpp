#pragma once

// Ranks as threads in tests. Catch2 is not thread-safe: bodies throw (see SIFR_CHECK_RANK) instead
// of asserting.
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sifr::test {

/// What a rank's body threw.
struct RankError {
  int rank = -1;
  std::exception_ptr error;
  std::string text;
};

/// Ends the group, so that the other ranks do not wait out their timeouts.
using AbortGroup = std::function<void(int rank, const std::string& text)>;

inline std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& caught) {
    return caught.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

/// Runs body(rank) on a thread for each rank and joins them all. The errors come in the order in
/// which the ranks failed: the first is the cause, and makes `abort` run once.
inline std::vector<RankError> collect_rank_errors(int ranks,
                                                  const std::function<void(int)>& body,
                                                  const AbortGroup& abort = {}) {
  std::mutex mutex;
  std::vector<RankError> errors;
  const auto run = [&](int rank) {
    try {
      body(rank);
    } catch (...) {
      const std::lock_guard lock(mutex);
      errors.push_back({rank, std::current_exception(), text_of(std::current_exception())});
      if (errors.size() == 1 && abort) abort(rank, errors.front().text);
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back(run, rank);
  for (std::thread& thread : threads)
    thread.join();
  return errors;
}

/// As above; a failure is thrown after the join, as one text with every rank's, the cause first.
inline void run_ranks(int ranks,
                      const std::function<void(int)>& body,
                      const AbortGroup& abort = {}) {
  const std::vector<RankError> errors = collect_rank_errors(ranks, body, abort);
  std::string text;
  for (const RankError& error : errors)
    text += "rank " + std::to_string(error.rank) + ": " + error.text + "\n";
  if (!errors.empty()) throw std::runtime_error(text);
}

/// The communicator of a group's member: a Context's, or what a pointer to one points to.
template <class Member>
auto& communicator_of(Member& member) {
  if constexpr (requires { member.communicator(); }) {
    return member.communicator();
  } else {
    return *member;
  }
}

template <class Member>
AbortGroup abort_of(std::vector<Member>& members) {
  return [&members](int rank, const std::string& text) {
    communicator_of(members.at(static_cast<std::size_t>(rank))).abort(text);
  };
}

/// Runs body(member) on a thread for each member of a group: a vector of Contexts or of owned
/// Communicators.
template <class Member, class Body>
std::vector<RankError> collect_rank_errors(std::vector<Member>& members, const Body& body) {
  const auto one = [&](int rank) { body(members[static_cast<std::size_t>(rank)]); };
  return collect_rank_errors(static_cast<int>(members.size()), one, abort_of(members));
}

template <class Member, class Body>
void run_ranks(std::vector<Member>& members, const Body& body) {
  const auto one = [&](int rank) { body(members[static_cast<std::size_t>(rank)]); };
  run_ranks(static_cast<int>(members.size()), one, abort_of(members));
}

}  // namespace sifr::test

/// Inside a rank's body, where Catch2's own checks are not allowed.
#define SIFR_CHECK_RANK(condition)                                                \
  do {                                                                            \
    if (!(condition)) {                                                           \
      throw std::runtime_error("does not hold: " #condition " at " __FILE__ ":" + \
                               std::to_string(__LINE__));                         \
    }                                                                             \
  } while (false)
