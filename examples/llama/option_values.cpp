#include "examples/llama/option_values.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <system_error>
#include <utility>

namespace llama {
namespace {

// Products of two counts, such as a step and a step's samples, stay inside int64.
constexpr std::int64_t kLargestCount = std::numeric_limits<std::int32_t>::max();
constexpr int kMostThreads = 1024;
constexpr std::int64_t kKiB = 1 << 10;

template <class T>
bool read_number(std::string_view text, T least, T largest, T& value) {
  T number = {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return false;
  if (!(number >= least && number <= largest)) return false;  // NaN is neither
  value = number;
  return true;
}

bool read_tokens(std::string_view text, std::vector<std::int32_t>& tokens) {
  for (std::size_t first = 0; first <= text.size();) {
    const std::size_t comma = std::min(text.find(',', first), text.size());
    const std::string_view one = text.substr(first, comma - first);
    constexpr std::int32_t kLargest = std::numeric_limits<std::int32_t>::max();
    if (!read_number(one, 0, kLargest, tokens.emplace_back())) return false;
    first = comma + 1;
  }
  return true;
}

bool read_size(std::string_view text, std::int64_t& bytes) {
  std::int64_t unit = 1;
  for (const auto& [name, unit_bytes] : {std::pair("KiB", kKiB),
                                         std::pair("MiB", kKiB * 1024),
                                         std::pair("GiB", kKiB * 1024 * 1024)}) {
    if (!text.ends_with(name)) continue;
    unit = unit_bytes;
    text.remove_suffix(std::string_view(name).size());
    break;
  }
  const std::int64_t largest = std::numeric_limits<std::int64_t>::max() / unit;
  if (!read_number(text, std::int64_t{1}, largest, bytes)) return false;
  bytes *= unit;
  return true;
}

template <class T>
std::string whole_number_in(T least, T largest) {
  return fmt::format("a whole number from {} to {}", least, largest);
}

// Letters to insert, delete or replace.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// The option that was probably meant: near, or one of which `name` is the beginning.
std::string nearest_option(const CLI::App& app, const std::string& name) {
  constexpr std::size_t kFarthest = 3;  // letters; less for short names
  std::size_t best = std::min(kFarthest, (name.size() - 1) / 2) + 1;
  std::string nearest;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& candidate : option->get_lnames()) {
      const bool is_beginning = name.size() > 1 && candidate.starts_with(name);
      const std::size_t distance = is_beginning ? 1 : edit_distance(name, candidate);
      if (distance >= best) continue;
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace

CLI::Option* StrictOptions::add(const std::string& name,
                                std::string type,
                                std::string allowed,
                                std::function<bool(std::string_view)> read,
                                std::string about) {
  const auto take = [name, allowed = std::move(allowed), read = std::move(read)](
                        const std::string& text) {
    if (read(text)) return;
    throw CLI::ValidationError(name, fmt::format("needs {}, and '{}' was given", allowed, text));
  };
  return app_.add_option_function<std::string>(name, take, std::move(about))
      ->type_name(std::move(type));
}

CLI::Option* StrictOptions::path(const std::string& name,
                                 std::filesystem::path& value,
                                 std::string about) {
  const auto read = [&value](std::string_view text) {
    value = text;
    return !text.empty();
  };
  return add(name, "PATH", "a path", read, std::move(about));
}

CLI::Option* StrictOptions::text(const std::string& name, std::string& value, std::string about) {
  const auto read = [&value](std::string_view text) {
    value = text;
    return !text.empty();
  };
  return add(name, "TEXT", "at least one character", read, std::move(about));
}

CLI::Option* StrictOptions::count(const std::string& name,
                                  std::int64_t& value,
                                  std::int64_t least,
                                  std::string about) {
  const auto read = [&value, least](std::string_view text) {
    return read_number(text, least, kLargestCount, value);
  };
  return add(name, "INT", whole_number_in(least, kLargestCount), read, std::move(about));
}

CLI::Option* StrictOptions::threads(const std::string& name, int& value, std::string about) {
  const auto read = [&value](std::string_view text) {
    return read_number(text, 1, kMostThreads, value);
  };
  return add(name, "INT", whole_number_in(1, kMostThreads), read, std::move(about));
}

CLI::Option* StrictOptions::seed(const std::string& name,
                                 std::optional<std::uint64_t>& value,
                                 std::string about) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
  const auto read = [&value](std::string_view text) {
    return read_number(text, std::uint64_t{0}, kLargest, value.emplace());
  };
  return add(name, "INT", whole_number_in(std::uint64_t{0}, kLargest), read, std::move(about));
}

CLI::Option* StrictOptions::size(const std::string& name,
                                 std::optional<std::int64_t>& value,
                                 std::string about) {
  const auto read = [&value](std::string_view text) { return read_size(text, value.emplace()); };
  return add(name,
             "SIZE",
             "a whole number of bytes, KiB, MiB or GiB, such as 1073741824, 1024MiB or 1GiB",
             read,
             std::move(about));
}

CLI::Option* StrictOptions::amount(const std::string& name, double& value, std::string about) {
  const auto read = [&value](std::string_view text) {
    return read_number(text, 0.0, std::numeric_limits<double>::max(), value);
  };
  return add(name, "FLOAT", "a finite number, 0 or more", read, std::move(about));
}

CLI::Option* StrictOptions::tokens(const std::string& name,
                                   std::vector<std::int32_t>& value,
                                   std::string about) {
  const auto read = [&value](std::string_view text) { return read_tokens(text, value); };
  return add(
      name, "INT,…", "whole numbers with commas between, such as 1,2,3", read, std::move(about));
}

std::string unexpected_arguments(const CLI::App& app) {
  const std::vector<std::string> extra = app.remaining();
  const auto unknown = std::find_if(
      extra.begin(), extra.end(), [](const std::string& text) { return text.starts_with('-'); });
  if (unknown == extra.end())
    return extra.empty() ? "" : fmt::format("unexpected argument '{}'", extra.front());
  const std::string option = unknown->substr(0, unknown->find('='));
  const std::string nearest =
      nearest_option(app, option.substr(std::min(option.find_first_not_of('-'), option.size())));
  return fmt::format("unknown option {}{}",
                     option,
                     nearest.empty() ? "" : fmt::format("; did you mean --{}?", nearest));
}

}  // namespace llama
