// SPDX-License-Identifier: BSD-3-Clause
//
// Models as settings name them: by a name of the registry, or as the file of a
// net that Python exported ("net.pt2").
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/models/model.h"
#include "lockstep/train/state_part.h"

namespace lockstep::train {

/// True for the name of a file, or one of the registry.
bool is_named_model(std::string_view name);

// Errors of all: throw as `make_model`, and as `load_program`.

ImageSizes named_image_sizes(std::string_view name);
/// `asked`, with the channels and outputs that the file of a program has.
ModelOptions named_options(std::string_view name, ModelOptions asked);
ModelTask named_model_task(std::string_view name);
/// Whether the model takes samples of `shape`: {C, H, W}, or any other.
bool takes_shape(std::string_view name, std::size_t dimensions);

/// Fresh weights of a registry's model; those of the file of a program, which
/// has to be as `options` say.
/// Errors: also throws kMismatch (E_PROGRAM_INPUT) for a program of another
/// number of channels or outputs, of several inputs, or of one size of batch.
std::shared_ptr<Model> make_named(
    const std::string& name,
    const ModelOptions& options);

/// `program`: which graph the weights belong to. Loading refuses another one
/// (kMismatch, E_OTHER_MODEL). None for a module that is no program.
std::vector<StatePart> program_parts(torch::nn::Module& model);

/// Errors: as loading `program_parts`.
void check_program(const torch::nn::Module& model, const ckpt::Value& saved);

} // namespace lockstep::train
