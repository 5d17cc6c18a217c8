#include "engine/program/run_command.hpp"
#include "sifr_version.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <unistd.h>

namespace {

constexpr int kUsage = 2;

// A job goes on when its output has no reader or no room any more, and descriptors of its own never
// take the place of a closed standard stream.
void settle_streams() {
  for (const int signal : {SIGPIPE, SIGXFSZ})
    std::signal(signal, SIG_IGN);
  int descriptor = STDIN_FILENO;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO)
    descriptor = open("/dev/null", O_RDWR);
  if (descriptor >= 0) close(descriptor);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    settle_streams();
    CLI::App app("Runs and inspects training jobs of the sifr library.", "sifr");
    app.set_version_flag(
        "--version",
        fmt::format("sifr {}.{}.{}", SIFR_VERSION_MAJOR, SIFR_VERSION_MINOR, SIFR_VERSION_PATCH));
    app.require_subcommand(1);
    int code = 0;
    sifr::program::add_run_command(app, code);
    try {
      app.parse(count, arguments);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? 0 : kUsage;
    }
    return code;
  } catch (const std::exception& error) {
    fmt::print(stderr, "sifr: {}\n", error.what());
    return kUsage;
  }
}
