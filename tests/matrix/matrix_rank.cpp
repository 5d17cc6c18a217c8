// One rank of a training of the matrix, as a process: matrix_rank "model=odd ranks=3 …".
#include "tests/matrix/training.hpp"

#include <exception>
#include <iostream>

int main(int argc, char** argv) {
  try {
    const auto training = sifr::test::parse_training(argc > 1 ? argv[1] : "");
    auto context = sifr::Context::from_environment(
        {.log = [](sifr::Level, std::string_view) {}, .bind_cores = training.is_pinned});
    std::cout << sifr::test::to_text(sifr::test::train(training, context));
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
