#include "tests/comm/collective_sweep.hpp"

#include "tests/comm/run_group.hpp"

#include <bit>
#include <cstring>
#include <string>
#include <vector>

namespace sifr::test {
namespace {

constexpr std::int64_t kCounts[] = {0, 1, 7, 256, 4099, 70001};
constexpr DType kDTypes[] = {DType::kFloat32, DType::kBFloat16};

/// Element `index` of what rank `rank` holds in round `round`: many magnitudes, exact in bf16 when
/// cut to 16 bits.
std::uint32_t bits_of(int rank, int round, std::int64_t index) {
  std::uint64_t x = static_cast<std::uint64_t>(index) + 1;
  x = x * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(rank) * 0xD1B54A32D192ED03U +
      static_cast<std::uint64_t>(round);
  x = (x ^ (x >> 31)) * 0xBF58476D1CE4E5B9U;
  x ^= x >> 27;
  const auto exponent = static_cast<std::uint32_t>(120 + x % 12);
  return static_cast<std::uint32_t>(x >> 41) | (exponent << 23) |
         (static_cast<std::uint32_t>(x & 1U) << 31);
}

float reference_value(DType dtype, int rank, int round, std::int64_t index) {
  const std::uint32_t bits = bits_of(rank, round, index);
  return std::bit_cast<float>(dtype == DType::kFloat32 ? bits : bits & 0xFFFF0000U);
}

void fill(View view, int rank, int round, std::int64_t first = 0) {
  for (std::int64_t i = 0; i < view.count; ++i) {
    const std::uint32_t bits = bits_of(rank, round, first + i);
    if (view.dtype == DType::kFloat32) {
      std::memcpy(view.data + 4 * i, &bits, 4);
    } else {
      const auto high = static_cast<std::uint16_t>(bits >> 16);
      std::memcpy(view.data + 2 * i, &high, 2);
    }
  }
}

void expect_filled(ConstView view, int rank, int round, const std::string& what) {
  std::vector<std::byte> wanted(static_cast<std::size_t>(view.bytes()));
  fill({wanted.data(), view.count, view.dtype}, rank, round);
  expect(view.count == 0 || std::memcmp(wanted.data(), view.data, wanted.size()) == 0, what);
}

/// Hands out tensors one after another, each on its own page.
class Arena {
 public:
  Arena(Communicator& group, Placing placing, std::int64_t bytes) {
    if (placing == Placing::kShared) {
      buffer_ = group.allocate(bytes, Purpose::kBucket);
      data_ = buffer_.data();
    } else {
      private_.resize(static_cast<std::size_t>(bytes));
      data_ = private_.data();
    }
  }
  View take(std::int64_t count, DType dtype) {
    const View view = {data_ + used_, count, dtype};
    used_ += (view.bytes() + 4095) / 4096 * 4096;
    return view;
  }
  void clear() { used_ = 0; }

 private:
  SharedBuffer buffer_;
  std::vector<std::byte> private_;
  std::byte* data_ = nullptr;
  std::int64_t used_ = 0;
};

Arena make_arena(Communicator& group, Placing placing) {
  return {group, placing, (std::int64_t{group.size()} + 2) * (70001 * 8 + 8192)};
}

/// The group's own stream and a caller stream in turn.
struct Streams {
  explicit Streams(Communicator& group)
      : own(group.stream()), caller(Stream::caller(&group.device().pool())) {}
  Stream& pick(int round) { return round % 2 == 0 ? own : caller; }
  Stream& own;
  Stream caller;
};

std::string label(const char* operation, DType dtype, std::int64_t count, int round) {
  return std::string(operation) + " of " + std::to_string(count) + " " +
         std::string(name_of(dtype)) + " in round " + std::to_string(round);
}

struct Reduction {
  DType dtype;
  std::int64_t slice_count;
  std::int64_t first;
  std::int64_t count;
  int round;
  int zero_rank;  // contributes nothing
};

void check_reduction(Communicator& group, Arena& arena, Stream& stream, const Reduction& wanted) {
  const int size = group.size();
  const View whole = arena.take(wanted.slice_count * size, wanted.dtype);
  const View sum = arena.take(wanted.count, DType::kFloat32);
  fill(whole, group.rank(), wanted.round);
  fill(sum, 99, wanted.round);
  const ReducePart part = {.whole = group.rank() == wanted.zero_rank ? View{} : whole,
                           .slice_count = wanted.slice_count,
                           .first = wanted.first,
                           .sum = sum,
                           .accumulate = wanted.round % 3 == 2};
  group.reduce_scatter({&part, 1}, {"sweep"}, stream).wait();
  for (std::int64_t i = 0; i < wanted.count; ++i) {
    const std::int64_t index = group.rank() * wanted.slice_count + wanted.first + i;
    const auto value = [&](int r) {
      return r == wanted.zero_rank ? 0.0F : reference_value(wanted.dtype, r, wanted.round, index);
    };
    float s = value(0);
    for (int r = 1; r < size; ++r)
      s = s + value(r);
    if (part.accumulate) s = reference_value(DType::kFloat32, 99, wanted.round, i) + s;
    expect(std::bit_cast<std::uint32_t>(s) == std::bit_cast<std::uint32_t>(sum.as<float>()[i]),
           label("reduce-scatter", wanted.dtype, wanted.count, wanted.round) + ", element " +
               std::to_string(i));
  }
}

}  // namespace

void sweep_reduce_scatter(Communicator& group, Placing placing) {
  Arena arena = make_arena(group, placing);
  Streams streams(group);
  int round = 0;
  for (const DType dtype : kDTypes) {
    for (const std::int64_t count : kCounts) {
      for (const std::int64_t cut : {std::int64_t{0}, count / 3}) {
        const int zero_rank = round % 4 == 3 ? round % group.size() : -1;
        arena.clear();
        check_reduction(
            group, arena, streams.pick(round), {dtype, count, cut, count - cut, round, zero_rank});
        group.barrier({"before the next fill"});
        ++round;
      }
    }
  }
}

void sweep_all_gather(Communicator& group, Placing placing) {
  Arena arena = make_arena(group, placing);
  Streams streams(group);
  int round = 0;
  for (const DType dtype : kDTypes) {
    for (const std::int64_t count : kCounts) {
      for (const bool in_place : {false, true}) {
        arena.clear();
        const View whole = arena.take(count * group.size(), dtype);
        const View part =
            in_place ? whole.slice(group.rank() * count, count) : arena.take(count, dtype);
        fill(part, group.rank(), round);
        const GatherPart list[] = {{part, whole}, {part.slice(0, 0), whole.slice(0, 0)}};
        group.all_gather(list, {"sweep"}, streams.pick(round)).wait();
        for (int r = 0; r < group.size(); ++r) {
          expect_filled(
              whole.slice(r * count, count), r, round, label("all-gather", dtype, count, round));
        }
        group.barrier({"before the next fill"});
        ++round;
      }
    }
  }
}

void sweep_broadcast(Communicator& group, Placing placing) {
  Arena arena = make_arena(group, placing);
  Streams streams(group);
  int round = 0;
  for (const DType dtype : kDTypes) {
    for (const std::int64_t count : kCounts) {
      for (int root = 0; root < group.size(); ++root) {
        arena.clear();
        const View views[] = {arena.take(count, dtype), arena.take(1, DType::kFloat32)};
        for (const View& view : views)
          fill(view, group.rank(), round);
        group.broadcast(views, root, {"sweep"}, streams.pick(round)).wait();
        for (const View& view : views)
          expect_filled(view, root, round, label("broadcast", dtype, count, round));
        group.barrier({"before the next fill"});
        ++round;
      }
    }
  }
}

void sweep_exchange(Communicator& group) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{17}, std::size_t{16384}, std::size_t{50001}}) {
    std::vector<std::byte> mine(bytes, static_cast<std::byte>(group.rank() + 1));
    std::vector<std::byte> all(bytes * static_cast<std::size_t>(group.size()));
    group.exchange(mine, all, {"sweep"});
    for (std::size_t i = 0; i < all.size(); ++i) {
      expect(all[i] == static_cast<std::byte>(i / bytes + 1),
             "exchange of " + std::to_string(bytes) + " bytes");
    }
  }
  group.barrier({"end"});
}

}  // namespace sifr::test
