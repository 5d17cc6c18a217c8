#include "device/detail/host_kernels.hpp"
#include "device/detail/stream_state.hpp"

#include <atomic>

namespace sifr::detail {
namespace {

/// Work is done when submit returns; only the error of a failed stream is left to tell.
class CallerStream final : public StreamState {
 public:
  explicit CallerStream(ThreadPool* pool) noexcept : StreamState(StreamKind::kCaller, pool) {}

  [[nodiscard]] Kernels& kernels() noexcept override { return kernels_; }
  [[nodiscard]] std::uint64_t submitted() const override { return submitted_; }
  [[nodiscard]] bool is_complete(std::uint64_t /*ticket*/) const override { return true; }
  void block(std::uint64_t /*ticket*/) override {}
  void end() noexcept override {}

  void submit(Task task) override {
    ++submitted_;
    run([&] { task(); });
  }
  void wait(const Event& event) override {
    ++submitted_;
    run([&] { event.wait(); });
  }

 private:
  template <class Work>
  void run(const Work& work) {
    if (has_failed()) rethrow();
    try {
      work();
    } catch (...) {
      if (!has_failed()) fail(submitted_, std::current_exception());
      throw;
    }
  }

  HostKernels kernels_;
  std::atomic<std::uint64_t> submitted_ = 0;
};

}  // namespace

std::shared_ptr<StreamState> make_caller_state(ThreadPool* pool) {
  return std::make_shared<CallerStream>(pool);
}

}  // namespace sifr::detail
