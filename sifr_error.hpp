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

/// The call is wrong: fix the calling code. The engine's state is as before the call.
class SIFR_API UsageError : public std::logic_error, public Error {
 public:
  using std::logic_error::logic_error;
  [[nodiscard]] const char* message() const noexcept override { return what(); }
};

}  // namespace sifr
