#include "device/stream.hpp"

#include "device/detail/check.hpp"
#include "device/detail/stream_state.hpp"

#include <utility>

namespace sifr {

Event::Event(std::shared_ptr<detail::StreamState> state, std::uint64_t ticket) noexcept
    : state_(std::move(state)), ticket_(ticket) {}

bool Event::is_complete() const {
  return state_ == nullptr || state_->is_complete(ticket_);
}

void Event::wait() const {
  if (state_ != nullptr) state_->wait_for(ticket_);
}

Stream::Stream(std::shared_ptr<detail::StreamState> state) noexcept : state_(std::move(state)) {}
Stream::Stream(Stream&&) noexcept = default;

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    if (state_ != nullptr) state_->end();
    state_ = std::move(other.state_);
  }
  return *this;
}

Stream::~Stream() {
  if (state_ != nullptr) state_->end();
}

Stream Stream::caller(ThreadPool* pool) {
  return Stream(detail::make_caller_state(pool));
}

Stream Stream::worker(const std::string& name, ThreadPool* pool, const std::vector<int>& cpus) {
  return Stream(detail::make_worker_state(name, pool, cpus));
}

void Stream::submit(detail::Task task) {
  SIFR_REQUIRE(
      UsageError, state_ != nullptr && task, "an empty task, or a stream that was moved from");
  state_->submit(std::move(task));
}

Event Stream::record() {
  SIFR_REQUIRE(UsageError, state_ != nullptr, "the stream was moved from");
  return {state_, state_->submitted()};
}

void Stream::wait(const Event& event) {
  SIFR_REQUIRE(UsageError, state_ != nullptr, "the stream was moved from");
  if (event.state_ == nullptr || event.state_ == state_) return;  // long past, or in order anyway
  state_->wait(event);
}

void Stream::synchronize() {
  record().wait();
}

StreamKind Stream::kind() const noexcept {
  return state_->kind();
}
detail::Kernels& Stream::kernels() const noexcept {
  return state_->kernels();
}
ThreadPool* Stream::pool() const noexcept {
  return state_->pool();
}

}  // namespace sifr
