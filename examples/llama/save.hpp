#pragma once

#include "engine/engine.hpp"
#include "examples/llama/hugging_face_writer.hpp"

namespace llama {

/// The dtype of a saved file's tensors, where the model computes in `compute`.
[[nodiscard]] sifr::DType stored_dtype(sifr::DType compute, sifr::ExportAs what);

/// Collective, between steps: rank 0 writes the model as a Hugging Face folder, in `compute`, the
/// dtype in which it computes, or as fp32 masters. Throws on every rank where that fails
/// (sifr::IoError on rank 0); the engine stays usable, and an older save stays as it was.
void save_model(sifr::Engine& engine,
                const SaveOptions& options,
                sifr::DType compute,
                sifr::ExportAs what);

/// Collective: finds out before any training what would keep save_model from writing: the name,
/// what it holds, its parent, a limit on files' sizes. Throws as save_model does; nothing is left
/// behind. Too little space is a warning: there may be more when the training has ended.
void try_to_save(sifr::Context& context,
                 const SaveOptions& options,
                 sifr::DType compute,
                 sifr::ExportAs what);

}  // namespace llama
