#pragma once

namespace CLI {
class App;
}

namespace sifr::program {

/// Adds `sifr run --ranks N [--bind-cores] [--port P] -- program arguments`. When it is chosen,
/// `code` becomes the exit code of the first rank that failed, 128 plus the number of the signal
/// that killed it, or 0.
void add_run_command(CLI::App& app, int& code);

}  // namespace sifr::program
