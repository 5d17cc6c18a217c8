#include "device/device.hpp"
#include "device/kernels.hpp"
#include "tests/support/count_allocations.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <memory>

using namespace sifr;

namespace {

constexpr std::int64_t kCount = 100000;

/// Two devices' streams in the way of a training step.
class Step {
 public:
  Step()
      : device_(make_host_device({.threads = 2})),
        worker_(device_->make_stream("worker")),
        buffer_(device_->allocate(24 * kCount, Purpose::kOptimizer)) {
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      arrays_[i] = {
          buffer_.data() + static_cast<std::int64_t>(i) * 4 * kCount, kCount, DType::kFloat32};
    }
    inputs_ = {arrays_[0], arrays_[1]};
  }

  void run() {
    Stream& compute = device_->compute();
    kernels::fill_zero(arrays_[0], compute);
    worker_.wait(compute.record());
    kernels::sum_in_order(inputs_, arrays_[2], kernels::Into::kAdd, worker_);
    kernels::square_sum(arrays_[2], norm_, worker_);
    compute.wait(worker_.record());
    const Charge charge = device_->account().charge(100, Purpose::kActivation);
    kernels::adam(
        {arrays_[2], arrays_[3], arrays_[4], arrays_[5], {}}, {.step_size = 0.1F}, compute);
    kernels::scale(arrays_[0], 0.5F, compute);
    kernels::hash(arrays_[3], 0, 0, hash_, worker_);
    worker_.synchronize();
  }

 private:
  std::unique_ptr<Device> device_;
  Stream worker_;
  Buffer buffer_;
  std::array<View, 6> arrays_ = {};
  std::array<ConstView, 2> inputs_ = {};
  kernels::SquareSum norm_;
  kernels::Hash128 hash_;
};

}  // namespace

TEST_CASE("streams, kernels and charges allocate nothing once they run", "[device]") {
  if (!test::can_count_allocations()) {
    WARN("[skipped] a sanitizer brings its own allocator");
    return;
  }
  Step step;
  step.run();
  const test::Allocations before = test::allocations_so_far();
  for (int i = 0; i < 50; ++i)
    step.run();
  const test::Allocations after = test::allocations_so_far();
  CHECK(after - before == test::Allocations{});
}

TEST_CASE("a deliberate allocation on a worker is counted", "[device]") {
  if (!test::can_count_allocations()) {
    WARN("[skipped] a sanitizer brings its own allocator");
    return;
  }
  Stream worker = Stream::worker("worker");
  worker.synchronize();
  std::unique_ptr<int> memory;
  const test::Allocations before = test::allocations_so_far();
  worker.submit([&] { memory = std::make_unique<int>(1); });
  worker.synchronize();
  const test::Allocations after = test::allocations_so_far();
  CHECK((after - before).memory == 1);
}
