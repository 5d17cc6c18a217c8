#pragma once

#include "comm/communicator.hpp"

#include <functional>
#include <map>
#include <string>

namespace sifr::test {

/// Scenarios of comm_rank in which the system refuses memory to rank 1, or to all.
[[nodiscard]] std::map<std::string, std::function<void(Communicator&)>> refusals();

}  // namespace sifr::test
