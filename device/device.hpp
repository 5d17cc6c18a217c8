#pragma once

#include "./log.hpp"
#include "./memory.hpp"
#include "./stream.hpp"
#include "./thread_pool.hpp"
#include "./view.hpp"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace sifr {

/// The accelerator or the operating system refused: the message names the call. The device is not
/// usable further.
class SIFR_API DeviceError : public std::runtime_error, public Error {
 public:
  using std::runtime_error::runtime_error;
  [[nodiscard]] const char* message() const noexcept override { return what(); }
};

/// host: ordinary memory and threads. cuda: a GPU. simulated: a real account, memory without bytes,
/// virtual clocks.
enum class DeviceKind : std::uint8_t { kHost, kCuda, kSimulated };

/// One rank's machine: memory with an account, streams, and the helpers that run its host kernels.
class SIFR_API Device {
 public:
  Device() = default;
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] virtual DeviceKind kind() const noexcept = 0;
  [[nodiscard]] virtual MemoryAccount& account() noexcept = 0;
  [[nodiscard]] virtual ThreadPool& pool() noexcept = 0;
  /// The stream on which the model computes. On the host a caller stream.
  [[nodiscard]] virtual Stream& compute() noexcept = 0;
  /// A further stream; on the host a worker bound to the rank's cores. The device outlives it.
  [[nodiscard]] virtual Stream make_stream(const std::string& name) = 0;

  /// Device memory: zeroed, resident, aligned to 4096 bytes. 0 bytes is an ordinary size, with a
  /// null address. May outlive the device. Throws OutOfMemory.
  [[nodiscard]] virtual Buffer allocate(std::int64_t bytes, Purpose purpose) = 0;
};

struct HostOptions {
  Limits limits = {};
  int threads = 1;             // of the pool, the caller included
  std::vector<int> cpus = {};  // where helpers and workers run; empty: anywhere
  int rank = 0;                // for notices
  Log log =
      {};  // told once if the system refuses to bind threads to `cpus`; they then run anywhere
};
[[nodiscard]] SIFR_API std::unique_ptr<Device> make_host_device(const HostOptions& options);

/// `index`: the GPU's number. Throws DeviceError where sifr was built without CUDA.
[[nodiscard]] SIFR_API std::unique_ptr<Device> make_cuda_device(int index, const Limits& limits);

}  // namespace sifr
