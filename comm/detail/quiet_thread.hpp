#pragma once

#include <functional>
#include <thread>

namespace sifr::detail {

/// Starts a thread that no signal is delivered to: signals are the program's, and go to its own
/// threads. `name` (15 characters) shows in debuggers. Throws std::system_error if the system has
/// no thread left.
[[nodiscard]] std::thread start_quiet_thread(const char* name, std::function<void()> body);

}  // namespace sifr::detail
