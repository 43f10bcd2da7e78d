// SPDX-License-Identifier: BSD-3-Clause
//
// Settings that ship: `--recipe NAME`. The files are those of
// cli_train/recipes, built in, and installed as share/lockstep/recipes for who
// wants to change one.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::cli_train {

/// The YAML of a recipe.
/// Errors: throws kInvalidArgument (E_FLAG_VALUE) for a name that none has,
/// with the nearest one.
std::string_view recipe_text(const std::string& name);

} // namespace lockstep::cli_train
