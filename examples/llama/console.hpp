#pragma once

#include <string_view>

/// Text for people. Where it cannot be written (a full disk behind the stream) the training goes
/// on.
namespace llama {

/// On stdout, there when this returns.
void print(std::string_view text) noexcept;

/// A line on stderr, in the program's name.
void warn(std::string_view text) noexcept;

/// Throws sifr::IoError if something could not be written to stdout.
void require_printed();

}  // namespace llama
