#pragma once

#include "comm/meeting_point.hpp"

#include <string>
#include <vector>

namespace sifr::program {

/// The launcher's own variables ("NAME=value"), with those that tell a rank who it is in place of
/// an outer job's. Where the ranks' OpenMP threads are more than the cores, as they are by OpenMP's
/// default of a thread for each core in each rank, they are told to sleep while they wait
/// (OMP_WAIT_POLICY): spinning ones take the cores from those that work, and a step takes 20 to 60
/// times as long. What the user says of it stays.
[[nodiscard]] std::vector<std::string> rank_environment(const MeetingPoint& meeting_point,
                                                        int rank,
                                                        int ranks,
                                                        bool has_own_cores);

}  // namespace sifr::program
