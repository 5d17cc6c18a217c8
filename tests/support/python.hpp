#pragma once

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace sifr::test {

/// What `python3 script arguments` prints. `python` is the interpreter that CMake found.
inline std::string run_python(const std::string& python,
                              const std::string& script,
                              const std::string& arguments) {
  const std::string command = "'" + python + "' '" + script + "' " + arguments;
  std::FILE* const pipe = popen(command.c_str(), "r");  // NOLINT(cert-env33-c)
  if (pipe == nullptr) throw std::runtime_error("cannot start: " + command);
  std::string text;
  char piece[4096];
  while (const std::size_t length = std::fread(piece, 1, sizeof(piece), pipe))
    text.append(piece, length);
  if (pclose(pipe) != 0) throw std::runtime_error("failed: " + command);
  return text;
}

}  // namespace sifr::test
