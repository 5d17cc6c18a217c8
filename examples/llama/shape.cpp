#include "examples/llama/shape.hpp"

#include <array>
#include <charconv>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace llama {
namespace {

using Errors = std::vector<std::string>;

struct CountKey {
  std::string_view name;
  std::int64_t LlamaShape::*member;
  bool is_needed;
  std::int64_t largest = 1'000'000'000;  // products of two sizes stay inside int64
};
constexpr std::array kCounts = {
    CountKey{"hidden", &LlamaShape::hidden, true},
    CountKey{"layers", &LlamaShape::layers, true, 10'000},
    CountKey{"heads", &LlamaShape::heads, true},
    CountKey{"kv_heads", &LlamaShape::kv_heads, true},
    CountKey{"head_size", &LlamaShape::head_size, false},
    CountKey{"intermediate", &LlamaShape::intermediate, true},
    CountKey{"vocab", &LlamaShape::vocab, true},
};
struct NumberKey {
  std::string_view name;
  double LlamaShape::*member;
  double least;
  double largest;
};
// Far beyond all models, and within fp32, in which the numbers are computed with.
constexpr std::array kNumbers = {
    NumberKey{"rope_theta", &LlamaShape::rope_theta, 1, 1e30},
    NumberKey{"rms_eps", &LlamaShape::rms_eps, 1e-30, 1},
};
constexpr std::string_view kExample =
    "'hidden=64,layers=2,heads=4,kv_heads=2,intermediate=128,vocab=256,tied=0'";
constexpr std::string_view kKeys =
    "hidden, layers, heads, kv_heads, head_size, intermediate, vocab, tied, rope_theta, rms_eps";
constexpr double kMostParameters = 1e15;  // no machine holds more

[[noreturn]] void fail(const std::string& front, const Errors& errors) {
  std::string text = front;
  for (const std::string& error : errors)
    text += "\n  " + error;
  throw std::invalid_argument(text);
}

template <class T>
bool read_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

std::string quoted(std::string_view text) {
  return std::string(1, '\'').append(text).append(1, '\'');
}

std::string short_text(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

bool read_count(LlamaShape& shape, std::string_view key, std::string_view value, Errors& errors) {
  for (const CountKey& count : kCounts) {
    if (count.name != key) continue;
    if (!read_number(value, shape.*count.member)) {
      errors.push_back(std::string(key) + "=" + std::string(value) + ": needs a whole number");
    }
    return true;
  }
  return false;
}

bool read_real(LlamaShape& shape, std::string_view key, std::string_view value, Errors& errors) {
  for (const NumberKey& number : kNumbers) {
    if (number.name != key) continue;
    if (!read_number(value, shape.*number.member)) {
      errors.push_back(std::string(key) + "=" + std::string(value) + ": needs a number");
    }
    return true;
  }
  return false;
}

void read_entry(LlamaShape& shape,
                std::string_view entry,
                std::vector<std::string_view>& seen,
                Errors& errors) {
  const std::size_t equals = entry.find('=');
  if (equals == std::string_view::npos) {
    errors.push_back(quoted(entry) + ": needs the form key=value");
    return;
  }
  const std::string_view key = entry.substr(0, equals);
  const std::string_view value = entry.substr(equals + 1);
  for (const std::string_view earlier : seen) {
    if (earlier == key) errors.push_back(std::string(key) + " is written twice");
  }
  seen.push_back(key);
  if (read_count(shape, key, value, errors) || read_real(shape, key, value, errors)) return;
  if (key != "tied") {
    errors.push_back(quoted(key) + " is no key; the keys are " + std::string(kKeys));
  } else if (value == "0" || value == "1") {
    shape.tied = value == "1";
  } else {
    errors.push_back("tied=" + std::string(value) + ": needs 0 or 1");
  }
}

void note_missing(const std::vector<std::string_view>& seen, Errors& errors) {
  const auto is_missing = [&seen](std::string_view key) {
    for (const std::string_view written : seen) {
      if (written == key) return false;
    }
    return true;
  };
  for (const CountKey& count : kCounts) {
    if (count.is_needed && is_missing(count.name))
      errors.push_back(std::string(count.name) + " is missing");
  }
  if (is_missing("tied"))
    errors.emplace_back("tied is missing: 1 if the head uses the embedding's matrix, else 0");
}

// In double where the count may not fit int64.
template <class Number>
Number block_parameters_of(const LlamaShape& shape) {
  const auto hidden = static_cast<Number>(shape.hidden);
  const auto head_size = static_cast<Number>(shape.head_size);
  const Number heads = static_cast<Number>(shape.heads) + static_cast<Number>(shape.kv_heads);
  const Number attention = 2 * hidden * heads * head_size;
  return attention + 3 * hidden * static_cast<Number>(shape.intermediate) + 2 * hidden;
}

template <class Number>
Number parameters_of(const LlamaShape& shape) {
  const auto hidden = static_cast<Number>(shape.hidden);
  const Number matrices = (shape.tied ? 1 : 2) * static_cast<Number>(shape.vocab);
  const auto layers = static_cast<Number>(shape.layers);
  return matrices * hidden + layers * block_parameters_of<Number>(shape) + hidden;
}

Errors faults_of(const LlamaShape& shape) {
  Errors errors;
  for (const CountKey& count : kCounts) {
    const std::int64_t value = shape.*count.member;
    if (value >= 1 && value <= count.largest) continue;
    errors.push_back(std::string(count.name) + "=" + std::to_string(value) +
                     ": must be from 1 to " + std::to_string(count.largest));
  }
  if (shape.kv_heads > 0 && shape.heads % shape.kv_heads != 0) {
    errors.push_back("heads=" + std::to_string(shape.heads) +
                     " must be a multiple of kv_heads=" + std::to_string(shape.kv_heads) +
                     ": each key head serves equally many query heads");
  }
  if (shape.head_size % 2 != 0) {
    errors.push_back("head_size=" + std::to_string(shape.head_size) +
                     " must be even: rotary positions turn pairs");
  }
  for (const NumberKey& number : kNumbers) {
    const double value = shape.*number.member;
    if (value >= number.least && value <= number.largest) continue;  // NaN is neither
    errors.push_back(std::string(number.name) + "=" + short_text(value) + ": must be from " +
                     short_text(number.least) + " to " + short_text(number.largest));
  }
  if (errors.empty() && parameters_of<double>(shape) > kMostParameters)
    errors.emplace_back("has more than 10^15 parameters, which no machine holds");
  return errors;
}

}  // namespace

std::int64_t LlamaShape::block_parameter_count() const noexcept {
  return block_parameters_of<std::int64_t>(*this);
}

std::int64_t LlamaShape::parameter_count() const noexcept {
  return parameters_of<std::int64_t>(*this);
}

LlamaShape parse_shape(std::string_view text) {
  LlamaShape shape;
  std::vector<std::string_view> seen;
  Errors errors;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = rest.find(',');
    read_entry(shape, rest.substr(0, comma), seen, errors);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  note_missing(seen, errors);
  const std::string front =
      "the shape " + quoted(text) + " (an example: " + std::string(kExample) + "):";
  if (!errors.empty()) fail(front, errors);
  if (shape.head_size == 0 && shape.heads > 0) {
    if (shape.hidden % shape.heads != 0) {
      fail(front,
           {"hidden=" + std::to_string(shape.hidden) + " is no multiple of heads=" +
            std::to_string(shape.heads) + ": change one of them, or add head_size"});
    }
    shape.head_size = shape.hidden / shape.heads;
  }
  errors = faults_of(shape);
  if (!errors.empty()) fail(front, errors);
  return shape;
}

void validate(const LlamaShape& shape) {
  const Errors errors = faults_of(shape);
  if (!errors.empty()) fail("the model's shape:", errors);
}

std::string to_string(const LlamaShape& shape) {
  std::ostringstream text;
  text.precision(17);
  for (const CountKey& count : kCounts)
    text << count.name << '=' << shape.*count.member << ',';
  text << "tied=" << (shape.tied ? 1 : 0);
  for (const NumberKey& number : kNumbers)
    text << ',' << number.name << '=' << shape.*number.member;
  return text.str();
}

}  // namespace llama
