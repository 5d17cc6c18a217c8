#pragma once

#include <stdexcept>
#include <string>

/// Marks what stays visible when sifr is linked into a shared library with hidden visibility.
#define SIFR_API __attribute__((visibility("default")))

namespace sifr {

/// Mix-in of every exception that sifr throws, so that one catch gets them all:
/// `catch (const sifr::Error& error) { std::cerr << error.message(); }`
///
/// There is one type per reaction of the caller. This header holds those that every room throws;
/// the others lie where they are thrown (ConfigError, DeviceError, OutOfMemory, CommError, …).
class SIFR_API Error {
 public:
  Error() = default;
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  virtual ~Error() = default;
  [[nodiscard]] virtual const char* message() const noexcept = 0;
};

/// The call is wrong: fix the calling code. The engine's state is as before the call, but for
/// two from step(): docs/porting.md, section 7.
class SIFR_API UsageError : public std::logic_error, public Error {
 public:
  using std::logic_error::logic_error;
  /// `check` lives as long as the program.
  UsageError(const std::string& text, const char* check) : std::logic_error(text), check_(check) {}
  [[nodiscard]] const char* message() const noexcept override { return what(); }
  /// For who maintains sifr: the check that did not hold and its place, "count > 0, file.cpp:12".
  /// Empty where the error comes from no check.
  [[nodiscard]] const char* check() const noexcept { return check_; }

 private:
  const char* check_ = "";
};

}  // namespace sifr
