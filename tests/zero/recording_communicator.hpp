#pragma once

// One rank of a group that is not there: it notes what it is asked for and moves nothing.
#include "comm/communicator.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace sifr::test {

class RecordingCommunicator final : public Communicator {
 public:
  RecordingCommunicator(int rank, int size)
      : device_(make_host_device({})), rank_(rank), size_(size) {}

  /// "gather a", "reduce b 512": what was asked for, in order; reduce with its elements.
  [[nodiscard]] const std::vector<std::string>& calls() const noexcept { return calls_; }
  void forget() { calls_.clear(); }

  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return size_; }
  [[nodiscard]] Device& device() noexcept override { return *device_; }
  [[nodiscard]] Stream& stream() noexcept override { return device_->compute(); }
  void abort(std::string_view) noexcept override {}
  void check() const override {}
  [[nodiscard]] Traffic traffic() const noexcept override { return {}; }
  void set_timeout(std::chrono::milliseconds) noexcept override {}
  void set_phase(std::string_view) noexcept override {}

 private:
  SharedBuffer do_allocate(std::int64_t bytes, Purpose purpose) override {
    return device_->allocate(bytes, purpose);
  }
  Event do_reduce_scatter(std::span<const ReducePart> parts, Tag tag, Stream& stream) override {
    std::int64_t elements = 0;
    for (const ReducePart& part : parts)
      elements += part.sum.count * size_;
    calls_.push_back("reduce " + std::string(tag.name) + " " + std::to_string(elements));
    return stream.record();
  }
  Event do_all_gather(std::span<const GatherPart>, Tag tag, Stream& stream) override {
    calls_.push_back("gather " + std::string(tag.name));
    return stream.record();
  }
  Event do_broadcast(std::span<const View>, int, Tag, Stream& stream) override {
    return stream.record();
  }
  void do_exchange(std::span<const std::byte>, std::span<std::byte>, Tag) override {}

  std::unique_ptr<Device> device_;
  int rank_;
  int size_;
  std::vector<std::string> calls_;
};

}  // namespace sifr::test
