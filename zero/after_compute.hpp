#pragma once

#include "../comm/communicator.hpp"

namespace sifr {

/// `stream`, which first waits for all that this rank's compute stream was given so far: what a
/// collective reads is written then, and what it writes is no longer read.
[[nodiscard]] inline Stream& after_compute(Communicator& communicator, Stream& stream) {
  stream.wait(communicator.device().compute().record());
  return stream;
}

}  // namespace sifr
