#pragma once

#include "../comm/communicator.hpp"
#include "../device/log.hpp"
#include "../device/memory.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sifr {

struct ContextOptions {
  std::string device = "host";  // "host", or "cuda:N" where sifr was built with CUDA
  Limits limits =
      {};  // bytes that this rank may hold; the engine's plan is checked against them at start
  Log log = {};     // where notices go; empty: stdout and stderr
  int threads = 0;  // of this rank's kernels; 0: cores in the affinity mask / ranks on this host
  bool bind_cores = true;  // helpers and workers run on this rank's share of the cores, if there is
                           // a core for each
};

/// A rank's place in the world: its group, device, memory account, helper threads and log. One per
/// rank; outlives the engines that use it. Move-only. Used by one thread at a time.
class SIFR_API Context {
 public:
  /// The rank that the launcher's environment names (`sifr run`, torchrun, mpirun, srun); one rank
  /// if none is set. Blocks until all ranks are there. Throws UsageError (contradictory variables),
  /// CommError, CommTimeout.
  [[nodiscard]] static Context from_environment(const ContextOptions& options = {});
  /// A group whose ranks are threads of this process: element r goes to the thread that is rank r.
  [[nodiscard]] static std::vector<Context> threads(int ranks, const ContextOptions& options = {});

  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
  /// Collective: the exact sum over ranks, rounded once; the same on every rank. Not finite if one
  /// of them is not. Belongs between steps: from an engine's first lease to its step() the ranks
  /// may stand at different collectives of its, and the group ends with a CommError.
  [[nodiscard]] double sum(double value);
  /// Collective: returns once every rank called it. Between steps, too.
  void barrier();

  [[nodiscard]] Communicator& communicator() noexcept;
  [[nodiscard]] Device& device() noexcept;
  [[nodiscard]] const Log& log() const noexcept;
  /// The cores that this rank has: those that its process may use, divided by the ranks that share
  /// them. More threads than that make the ranks wait for each other.
  [[nodiscard]] double cores() const noexcept;
  /// One line: ranks, host, threads of this rank and where their number comes from.
  [[nodiscard]] std::string description() const;

 private:
  struct State;
  explicit Context(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace sifr
