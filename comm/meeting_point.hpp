#pragma once

#include "../sifr_error.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sifr {

/// A launcher's side of a job: the place on this host's loopback interface where the ranks find
/// each other. Keep it until the ranks have ended. Runs a thread.
class SIFR_API MeetingPoint {
 public:
  /// `port` 0 takes a free one. Throws CommError naming the port if it is taken.
  explicit MeetingPoint(int ranks, std::uint16_t port = 0);
  MeetingPoint(const MeetingPoint&) = delete;
  MeetingPoint& operator=(const MeetingPoint&) = delete;
  ~MeetingPoint();

  /// The variables ("NAME=value") that tell a process that it is this rank; among them a secret
  /// that keeps others out.
  [[nodiscard]] std::vector<std::string> environment(int rank) const;
  [[nodiscard]] std::uint16_t port() const noexcept;
  /// Tells ranks that still wait for that one to join, or ever will, that its process has ended:
  /// their Context then throws CommError instead of waiting. No effect on ranks that have met.
  void rank_ended(int rank);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sifr
