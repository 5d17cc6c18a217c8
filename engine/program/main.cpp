#include "engine/program/run_command.hpp"
#include "sifr_version.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <exception>

namespace {

constexpr int kUsage = 2;

}  // namespace

int main(int count, char** arguments) {
  try {
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
