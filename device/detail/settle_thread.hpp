#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace sifr::detail {

/// Names the calling thread for debuggers (15 characters are shown) and binds it to `cpus`; empty
/// leaves it free. False if the system refused to bind: the thread then runs where it ran before.
bool settle_this_thread(const std::string& name, const std::vector<int>& cpus) noexcept;

/// Starts a thread that settles so and runs `body`. Throws DeviceError if the system has no thread
/// left.
[[nodiscard]] std::thread start_thread(const std::string& name,
                                       const std::vector<int>& cpus,
                                       std::function<void()> body);

}  // namespace sifr::detail
