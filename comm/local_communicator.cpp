#include "comm/detail/local_communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

namespace sifr::detail {
namespace {

std::int64_t result_bytes(const ReducePart& part) noexcept {
  return part.sum.bytes();
}
std::int64_t result_bytes(const GatherPart& part) noexcept {
  return part.whole.bytes();
}
std::int64_t result_bytes(const View& view) noexcept {
  return view.bytes();
}

}  // namespace

LocalCommunicator::LocalCommunicator(Device& device,
                                     int rank,
                                     const ControlBlock& control,
                                     std::unique_ptr<PeerMemory> memory,
                                     const GroupOptions& options)
    : device_(device),
      memory_(std::move(memory)),
      rounds_(control, rank, options, memory_->is_owned_by_peers()),
      timeout_(options.timeout),
      mover_(device, rounds_, *memory_),
      stream_(device.make_stream("sifr-comm-" + std::to_string(rank))) {}

LocalCommunicator::~LocalCommunicator() {
  if (std::uncaught_exceptions() > 0) abort("it left the group while an exception was thrown");
  try {
    stream_.synchronize();
  } catch (...) {  // the group has failed: every rank has been told, or is told at its next call
    (void)0;
  }
  rounds_.own().has_left.store(1, std::memory_order_release);
  rounds_.control().wake_all();
}

Call LocalCommunicator::make_call(Operation operation, std::string_view tag) const noexcept {
  return {operation, tag, std::min(timeout_.load(), kLongestTimeout), 0};
}

Event LocalCommunicator::enqueue(Stream& stream, Task task) {
  check();
  const bool is_own = &stream == &stream_;
  if (!(is_own && last_was_on_own_stream_)) stream.wait(last_);
  stream.submit(std::move(task));
  last_ = stream.record();
  last_was_on_own_stream_ = is_own;
  return last_;
}

template <class Part, class Describe, class Move>
void LocalCommunicator::run_list(const List<Part>& list,
                                 const Call& call,
                                 const Describe& describe,
                                 const Move& move) {
  const std::span<const Part> parts = list.parts;
  std::int64_t bytes = 0;
  std::uint64_t digest = 0;
  for (const Part& part : parts) {
    bytes += result_bytes(part);
    digest = add_to_digest(digest, describe(part));
  }
  mover_.begin(bytes);
  const auto length = static_cast<std::int64_t>(parts.size());
  std::int64_t first = 0;
  do {
    const std::int64_t count = std::min(Descriptor::kMaxEntries, length - first);
    const auto round =
        parts.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    Descriptor& draft = rounds_.draft();
    draft.root = list.root;
    draft.bytes = bytes;
    draft.list_length = length;
    draft.first_entry = first;
    draft.entry_count = count;
    draft.digest = digest;
    std::transform(round.begin(), round.end(), draft.entries.begin(), describe);
    rounds_.run(call, [&](const Call& running) {
      for (std::size_t i = 0; i < round.size(); ++i)
        move(round[i], i, running);
    });
    first += count;
  } while (first < length);
  mover_.count_collective();
}

Event LocalCommunicator::do_reduce_scatter(std::span<const ReducePart> parts,
                                           Tag tag,
                                           Stream& stream) {
  return enqueue(stream, [this, parts, call = make_call(Operation::kReduceScatter, tag.name)] {
    const auto describe = [this](const ReducePart& part) { return mover_.entry_for(part); };
    run_list(List<ReducePart>{parts},
             call,
             describe,
             [this](const ReducePart& part, std::size_t i, const Call& running) {
               mover_.reduce(part, i, running);
             });
  });
}

Event LocalCommunicator::do_all_gather(std::span<const GatherPart> parts, Tag tag, Stream& stream) {
  return enqueue(stream, [this, parts, call = make_call(Operation::kAllGather, tag.name)] {
    const auto describe = [this](const GatherPart& part) { return mover_.entry_for(part); };
    run_list(List<GatherPart>{parts},
             call,
             describe,
             [this](const GatherPart& part, std::size_t i, const Call& running) {
               mover_.gather(part, i, running);
             });
  });
}

Event LocalCommunicator::do_broadcast(std::span<const View> views,
                                      int root,
                                      Tag tag,
                                      Stream& stream) {
  return enqueue(stream, [this, views, root, call = make_call(Operation::kBroadcast, tag.name)] {
    const auto describe = [this, root](const View& view) {
      return mover_.entry_for(view, rank() == root);
    };
    run_list(List<View>{views, root},
             call,
             describe,
             [this, root](const View& view, std::size_t i, const Call& running) {
               mover_.receive(view, root, i, running);
             });
  });
}

void LocalCommunicator::do_exchange(std::span<const std::byte> mine,
                                    std::span<std::byte> all,
                                    Tag tag) {
  last_.wait();
  const Call call = make_call(mine.empty() ? Operation::kBarrier : Operation::kExchange, tag.name);
  std::size_t first = 0;
  do {
    const std::size_t count = std::min(RankBlock::kMailboxBytes, mine.size() - first);
    Descriptor& draft = rounds_.draft();
    draft.root = 0;
    draft.bytes = static_cast<std::int64_t>(mine.size());
    draft.list_length = draft.entry_count = 0;
    draft.first_entry = static_cast<std::int64_t>(first);
    draft.digest = 0;
    std::copy_n(
        mine.begin() + static_cast<std::ptrdiff_t>(first), count, rounds_.own().mailbox.begin());
    rounds_.run(call, [&](const Call&) {
      for (int r = 0; r < size(); ++r) {
        const auto at = static_cast<std::size_t>(r) * mine.size() + first;
        std::copy_n(
            rounds_.block(r).mailbox.begin(), count, all.begin() + static_cast<std::ptrdiff_t>(at));
      }
    });
    first += count;
  } while (first < mine.size());
  mover_.count_collective();
}

// The ranks of a machine take their memory at the same time: none takes any unless there is enough
// for all. All see the same numbers, so nobody has to be told.
void LocalCommunicator::require_machine(std::int64_t bytes, Purpose purpose, const Call& call) {
  struct Look {
    std::int64_t wanted = 0;
    std::int64_t available = 0;
  };
  const Look own = {bytes, available_bytes()};
  Look all = {0, own.available};
  std::memcpy(rounds_.own().mailbox.data(), &own, sizeof(own));
  rounds_.run(call, [&](const Call&) {
    for (int r = 0; r < size(); ++r) {
      Look theirs;
      std::memcpy(&theirs, rounds_.block(r).mailbox.data(), sizeof(theirs));
      all.wanted += theirs.wanted;
      all.available = std::min(all.available, theirs.available);
    }
  });
  if (all.wanted <= all.available || size() == 1) return;  // a single rank is told by its device
  throw OutOfMemory(
      fmt::format("{} needs {} on this rank and {} on the {} ranks of this machine, which has {} "
                  "left: lower the size, use other hosts, or end what else runs here",
                  name_of(purpose),
                  mib(bytes),
                  mib(all.wanted),
                  size(),
                  mib(all.available)),
      device_.account().table().with_refused(Tier::kDevice, purpose, bytes));
}

SharedBuffer LocalCommunicator::do_allocate(std::int64_t bytes, Purpose purpose) {
  last_.wait();
  const Call call = make_call(Operation::kAllocate, name_of(purpose));
  Descriptor& draft = rounds_.draft();
  draft.root = 0;
  draft.bytes = draft.list_length = draft.first_entry = draft.entry_count = 0;
  draft.digest = 0;
  require_machine(bytes, purpose, call);
  try {
    return memory_->allocate(bytes, purpose, call);
  } catch (const CommError& error) {
    abort(error.what());
    check();  // what was recorded first is the cause
    throw;
  } catch (const std::exception& error) {
    if (size() > 1) abort(error.what());  // a group of one may go on with less
    throw;
  }
}

}  // namespace sifr::detail
