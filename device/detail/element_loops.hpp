#pragma once

#include "../view.hpp"
#include "./clones.hpp"

#include <cstdint>

/// Loops over the elements of one or two views: conversion, cast, scale.
namespace sifr::detail {

SIFR_INLINE float load(float value) {
  return value;
}
SIFR_INLINE float load(bfloat16 value) {
  return to_float(value);
}
SIFR_INLINE float load(float16 value) {
  return to_float(value);
}

SIFR_INLINE void store(float value, float& to) {
  to = value;
}
SIFR_INLINE void store(float value, bfloat16& to) {
  to = to_bfloat16(value);
}
SIFR_INLINE void store(float value, float16& to) {
  to = to_float16(value);
}

template <class From, class To>
SIFR_INLINE void cast_loop(const From* __restrict from, To* __restrict to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    store(load(from[i]), to[i]);
}

template <class From>
SIFR_INLINE void cast_from(const From* from, View to) {
  switch (to.dtype) {
    case DType::kFloat32:
      return cast_loop(from, to.as<float>(), to.count);
    case DType::kBFloat16:
      return cast_loop(from, to.as<bfloat16>(), to.count);
    case DType::kFloat16:
      return cast_loop(from, to.as<float16>(), to.count);
  }
}

SIFR_INLINE void cast_any(ConstView from, View to) {
  switch (from.dtype) {
    case DType::kFloat32:
      return cast_from(from.as<float>(), to);
    case DType::kBFloat16:
      return cast_from(from.as<bfloat16>(), to);
    case DType::kFloat16:
      return cast_from(from.as<float16>(), to);
  }
}

template <class T>
SIFR_INLINE void scale_loop(T* values, std::int64_t count, float factor) {
  for (std::int64_t i = 0; i < count; ++i)
    store(load(values[i]) * factor, values[i]);
}

SIFR_INLINE void scale_any(View view, float factor) {
  switch (view.dtype) {
    case DType::kFloat32:
      return scale_loop(view.as<float>(), view.count, factor);
    case DType::kBFloat16:
      return scale_loop(view.as<bfloat16>(), view.count, factor);
    case DType::kFloat16:
      return scale_loop(view.as<float16>(), view.count, factor);
  }
}

}  // namespace sifr::detail
