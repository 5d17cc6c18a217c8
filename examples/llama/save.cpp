#include "examples/llama/save.hpp"

#include "examples/llama/failure.hpp"
#include "examples/llama/parameters.hpp"

#include <exception>
#include <optional>
#include <utility>

namespace llama {
namespace {

std::vector<sifr::SafetensorsWriter::Declared> declared(const LlamaShape& shape,
                                                        sifr::DType dtype) {
  std::vector<sifr::SafetensorsWriter::Declared> all;
  for (NamedUnit& unit : units_of(shape)) {
    for (NamedParameter& parameter : unit.parameters)
      all.push_back({std::move(parameter.name), dtype, std::move(parameter.shape)});
  }
  return all;
}

}  // namespace

void save_model(sifr::Engine& engine,
                const SaveOptions& options,
                sifr::DType dtype,
                sifr::ExportAs what) {
  if (what == sifr::ExportAs::kMasters) dtype = sifr::DType::kFloat32;
  std::optional<HuggingFaceWriter> writer;
  on_root(
      engine.context(), "--save", [&] { writer.emplace(options, declared(options.shape, dtype)); });
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

void try_to_save(sifr::Context& context, const SaveOptions& options, sifr::DType dtype) {
  on_root(context, "--save", [&] {
    const HuggingFaceWriter writer(options, declared(options.shape, dtype));
  });
}

}  // namespace llama
