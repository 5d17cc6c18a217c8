#include "comm/communicator.hpp"

#include "device/detail/check.hpp"

#include <algorithm>

namespace sifr {
namespace {

void check_view(std::string_view what, ConstView view) {
  SIFR_REQUIRE(UsageError, view.count >= 0, "{} has {} elements", what, view.count);
  SIFR_REQUIRE(UsageError,
               view.count == 0 || view.data != nullptr,
               "{} has {} elements but no memory",
               what,
               view.count);
}

void check_part(const ReducePart& part, int size, Tag tag) {
  check_view("a whole", part.whole);
  check_view("a sum", part.sum);
  SIFR_REQUIRE(UsageError,
               part.whole.count == 0 || part.whole.count == part.slice_count * size,
               "reduce-scatter \"{}\": whole has {} elements, needs {} ({} slices of {})",
               tag.name,
               part.whole.count,
               part.slice_count * size,
               size,
               part.slice_count);
  SIFR_REQUIRE(UsageError,
               part.first >= 0 && part.first + part.sum.count <= part.slice_count,
               "reduce-scatter \"{}\": elements {} to {} do not lie in a slice of {}",
               tag.name,
               part.first,
               part.first + part.sum.count,
               part.slice_count);
  SIFR_REQUIRE(UsageError,
               part.sum.dtype == DType::kFloat32,
               "reduce-scatter \"{}\": the sum is {}, must be fp32",
               tag.name,
               name_of(part.sum.dtype));
}

void check_part(const GatherPart& part, int size, Tag tag) {
  check_view("a part", part.part);
  check_view("a whole", part.whole);
  SIFR_REQUIRE(UsageError,
               part.whole.count == part.part.count * size,
               "all-gather \"{}\": whole has {} elements, needs {} ({} parts of {})",
               tag.name,
               part.whole.count,
               part.part.count * size,
               size,
               part.part.count);
  SIFR_REQUIRE(UsageError,
               part.whole.dtype == part.part.dtype,
               "all-gather \"{}\": part is {}, whole is {}",
               tag.name,
               name_of(part.part.dtype),
               name_of(part.whole.dtype));
}

}  // namespace

SharedBuffer Communicator::allocate(std::int64_t bytes, Purpose purpose) {
  SIFR_REQUIRE(UsageError, bytes >= 0, "cannot allocate {} bytes", bytes);
  return do_allocate(bytes, purpose);
}

Event Communicator::reduce_scatter(std::span<const ReducePart> parts, Tag tag, Stream& stream) {
  for (const ReducePart& part : parts)
    check_part(part, size(), tag);
  return do_reduce_scatter(parts, tag, stream);
}

Event Communicator::all_gather(std::span<const GatherPart> parts, Tag tag, Stream& stream) {
  for (const GatherPart& part : parts)
    check_part(part, size(), tag);
  return do_all_gather(parts, tag, stream);
}

Event Communicator::broadcast(std::span<const View> views, int root, Tag tag, Stream& stream) {
  SIFR_REQUIRE(UsageError,
               root >= 0 && root < size(),
               "broadcast \"{}\": root {} is not a rank of a group of {}",
               tag.name,
               root,
               size());
  for (const View& view : views)
    check_view("a view", view);
  return do_broadcast(views, root, tag, stream);
}

void Communicator::exchange(std::span<const std::byte> mine, std::span<std::byte> all, Tag tag) {
  SIFR_REQUIRE(UsageError,
               all.size() == mine.size() * static_cast<std::size_t>(size()),
               "exchange \"{}\": room for {} bytes, needs {} ({} ranks, {} bytes each)",
               tag.name,
               all.size(),
               mine.size() * static_cast<std::size_t>(size()),
               size(),
               mine.size());
  do_exchange(mine, all, tag);
}

void Communicator::barrier(Tag tag) {
  do_exchange({}, {}, tag);
}

}  // namespace sifr
