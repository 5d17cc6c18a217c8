#pragma once

#include "comm/communicator.hpp"

/// Every collective over many sizes and dtypes against a plain reference, on one rank of a group;
/// throws where a result differs. The same bodies run on threads and on processes.
namespace sifr::test {

/// Where the tensors lie: in memory that peers can read in place, or anywhere.
enum class Placing { kShared, kPrivate };

void sweep_reduce_scatter(Communicator& group, Placing placing);
void sweep_all_gather(Communicator& group, Placing placing);
void sweep_broadcast(Communicator& group, Placing placing);
/// Exchanges, exact sums and barriers.
void sweep_exchange(Communicator& group);

}  // namespace sifr::test
