#include "device/detail/host_kernels.hpp"

#include "device/detail/host_loops.hpp"
#include "device/thread_pool.hpp"

#include <algorithm>
#include <array>
#include <atomic>

namespace sifr::detail {
namespace {

template <class F>
void in_pieces(ThreadPool* pool,
               std::int64_t count,
               const F& f,
               std::int64_t grain = kernels::kGrain) {
  if (pool != nullptr) {
    pool->parallel_for(count, grain, f);
  } else if (count > 0) {
    f(std::int64_t{0}, count);
  }
}

/// f(i) for each i of `count`, drawn one by one.
template <class F>
void for_each(ThreadPool* pool, std::size_t count, const F& f) {
  const auto some = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      f(static_cast<std::size_t>(i));
  };
  in_pieces(pool, static_cast<std::int64_t>(count), some, 1);
}

kernels::AdamRun slice(const kernels::AdamRun& run, std::int64_t first, std::int64_t length) {
  const bool has_weight = run.weight.count > 0;
  return {run.sum.slice(first, length),
          run.master.slice(first, length),
          run.m.slice(first, length),
          run.v.slice(first, length),
          has_weight ? run.weight.slice(first, length) : View{}};
}

/// A SquareSum that pieces add to without locks.
class SharedSquareSum {
 public:
  /// piece.first_non_finite counts from `first`.
  void add(const kernels::SquareSum& piece, std::int64_t first = 0) noexcept {
    ExactSum sum = piece.sum;
    sum.normalise();
    for (std::size_t i = 0; i < digits_.size(); ++i)
      if (sum.digits()[i] != 0) digits_[i] += sum.digits()[i];  // most are 0, and the add is slow
    if (piece.first_non_finite >= 0) note(first + piece.first_non_finite);
  }
  void add_to(kernels::SquareSum& result) const noexcept {
    ExactSum::Digits digits = {};
    for (std::size_t i = 0; i < digits.size(); ++i)
      digits[i] = digits_[i];
    result.sum.add(ExactSum(digits));
    const std::int64_t found = first_non_finite_;
    const bool is_first = result.first_non_finite < 0 || found < result.first_non_finite;
    if (found >= 0 && is_first) result.first_non_finite = found;
  }

 private:
  void note(std::int64_t quantum) noexcept {
    std::int64_t known = first_non_finite_;
    while ((known < 0 || quantum < known) &&
           !first_non_finite_.compare_exchange_weak(known, quantum)) {
    }
  }
  std::array<std::atomic<std::int64_t>, ExactSum::kDigits> digits_ = {};
  std::atomic<std::int64_t> first_non_finite_ = -1;
};

/// A Hash128 that pieces add to without locks: four digits of 32 bits, with room for the carries of
/// 2^32 pieces.
class SharedHash {
 public:
  void add(const kernels::Hash128& piece) noexcept {
    digits_[0] += piece.low & 0xFFFFFFFFU;
    digits_[1] += piece.low >> 32;
    digits_[2] += piece.high & 0xFFFFFFFFU;
    digits_[3] += piece.high >> 32;
  }
  void add_to(kernels::Hash128& result) const noexcept {
    result.add({.low = digits_[0], .high = 0});
    result.add({.low = digits_[1] << 32, .high = digits_[1] >> 32});
    result.add({.low = 0, .high = digits_[2]});
    result.add({.low = 0, .high = digits_[3] << 32});
  }

 private:
  std::array<std::atomic<std::uint64_t>, 4> digits_ = {};
};

}  // namespace

void HostKernels::cast(ConstView from, View to, Stream& stream) {
  stream.submit([=, pool = stream.pool()] {
    in_pieces(pool, to.count, [&](std::int64_t first, std::int64_t last) {
      host::cast(from.slice(first, last - first), to.slice(first, last - first));
    });
  });
}

// Piece after piece, each through a buffer: what is written was read before.
void HostKernels::narrow_in_place(View values, DType to, Stream& stream) {
  stream.submit([=] {
    constexpr std::int64_t kPiece = 4096;
    std::array<std::byte, kPiece * sizeof(std::uint16_t)> narrow;
    const View target{values.data, values.count, to};
    for (std::int64_t first = 0; first < values.count; first += kPiece) {
      const std::int64_t length = std::min(kPiece, values.count - first);
      const View piece{narrow.data(), length, to};
      host::cast(values.slice(first, length), piece);
      host::cast(piece, target.slice(first, length));
    }
  });
}

void HostKernels::fill_zero(View view, Stream& stream) {
  stream.submit([=, pool = stream.pool()] {
    in_pieces(pool, view.count, [&](std::int64_t first, std::int64_t last) {
      host::fill(view.slice(first, last - first), 0);
    });
  });
}

void HostKernels::poison(View view, Stream& stream) {
  constexpr std::uint16_t kNaN = 0x7FA0;  // a NaN as bf16, as fp16 and, twice, as fp32
  stream.submit([=, pool = stream.pool()] {
    in_pieces(pool, view.count, [&](std::int64_t first, std::int64_t last) {
      host::fill(view.slice(first, last - first), kNaN);
    });
  });
}

void HostKernels::scale(View view, float factor, Stream& stream) {
  stream.submit([=, pool = stream.pool()] {
    in_pieces(pool, view.count, [&](std::int64_t first, std::int64_t last) {
      host::scale(view.slice(first, last - first), factor);
    });
  });
}

void HostKernels::sum_in_order(std::span<const ConstView> inputs,
                               View sum,
                               kernels::Into into,
                               Stream& stream) {
  stream.submit([=, pool = stream.pool()] {
    in_pieces(pool, sum.count, [&](std::int64_t first, std::int64_t last) {
      host::sum_in_order(inputs, first, sum.slice(first, last - first), into);
    });
  });
}

void HostKernels::square_sum(ConstView values, kernels::SquareSum& result, Stream& stream) {
  stream.submit([=, &result, pool = stream.pool()] {
    SharedSquareSum shared;
    in_pieces(pool, values.count, [&](std::int64_t first, std::int64_t last) {
      kernels::SquareSum piece;
      host::square_sum(values.slice(first, last - first), piece);
      shared.add(piece, first / kernels::kQuantum);
    });
    shared.add_to(result);
  });
}

void HostKernels::square_sum(std::span<const ConstView> views,
                             kernels::SquareSum& result,
                             Stream& stream) {
  stream.submit([=, &result, pool = stream.pool()] {
    SharedSquareSum shared;
    for_each(pool, views.size(), [&](std::size_t i) {
      kernels::SquareSum sum;
      host::square_sum(views[i], sum);
      if (sum.first_non_finite >= 0) sum.first_non_finite = static_cast<std::int64_t>(i);
      shared.add(sum);
    });
    shared.add_to(result);
  });
}

void HostKernels::adam(std::span<const kernels::AdamPiece> pieces,
                       std::span<const kernels::AdamScalars> groups,
                       Stream& stream) {
  stream.submit([=, pool = stream.pool()] {
    for_each(pool, pieces.size(), [&](std::size_t i) {
      host::adam(pieces[i].run, groups[pieces[i].group]);
    });
  });
}

void HostKernels::adam(const kernels::AdamRun& run,
                       const kernels::AdamScalars& scalars,
                       Stream& stream) {
  stream.submit([=, pool = stream.pool()] {
    in_pieces(pool, run.master.count, [&](std::int64_t first, std::int64_t last) {
      host::adam(slice(run, first, last - first), scalars);
    });
  });
}

void HostKernels::hash(ConstView values,
                       std::int64_t parameter,
                       std::int64_t first,
                       kernels::Hash128& result,
                       Stream& stream) {
  stream.submit([=, &result, pool = stream.pool()] {
    SharedHash shared;
    in_pieces(pool, values.count, [&](std::int64_t begin, std::int64_t end) {
      kernels::Hash128 piece;
      host::hash(values.slice(begin, end - begin), parameter, first + begin, piece);
      shared.add(piece);
    });
    shared.add_to(result);
  });
}

}  // namespace sifr::detail
