#include "examples/llama/save.hpp"

#include "examples/llama/console.hpp"
#include "examples/llama/failure.hpp"
#include "examples/llama/parameters.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <exception>
#include <optional>
#include <utility>

namespace llama {
namespace {

std::vector<sifr::SafetensorsWriter::Declared> declared(const LlamaShape& shape,
                                                        sifr::DType dtype) {
  std::vector<sifr::SafetensorsWriter::Declared> all;
  for (NamedParameter& parameter : parameters_of(shape))
    all.push_back({std::move(parameter.name), dtype, std::move(parameter.shape)});
  return all;
}

}  // namespace

sifr::DType stored_dtype(sifr::DType compute, sifr::ExportAs what) {
  return what == sifr::ExportAs::kMasters ? sifr::DType::kFloat32 : compute;
}

void save_model(sifr::Engine& engine,
                const SaveOptions& options,
                sifr::DType compute,
                sifr::ExportAs what) {
  std::optional<HuggingFaceWriter> writer;
  on_root(engine.context(), "--save", [&] {
    writer.emplace(options, declared(options.shape, stored_dtype(compute, what)));
  });
  std::exception_ptr failure;
  const auto write = [&](const sifr::WeightPiece& piece) {
    if (failure) return;
    try {
      writer->write(piece);
    } catch (...) {
      failure = std::current_exception();
    }
  };
  engine.export_weights(write, what);
  on_root(engine.context(), "--save", [&] {
    if (failure) std::rethrow_exception(failure);
    writer->finish();
  });
}

void try_to_save(sifr::Context& context,
                 const SaveOptions& options,
                 sifr::DType compute,
                 sifr::ExportAs what) {
  on_root(context, "--save", [&] {
    try {
      const HuggingFaceWriter writer(options, declared(options.shape, stored_dtype(compute, what)));
    } catch (const sifr::IoError& error) {
      if (error.error_number() != ENOSPC) throw;
      warn(fmt::format("{}; make room until it is saved", error.message()));
    }
  });
}

}  // namespace llama
