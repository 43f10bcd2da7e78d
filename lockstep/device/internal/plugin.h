// SPDX-License-Identifier: BSD-3-Clause
//
// Loads Lockstep's plugins: shared libraries that register something with
// LibTorch. They are never unloaded, since LibTorch keeps pointers into them.
//   auto* entry = plugin_symbol(load_plugin("lockstep_sim"), "entry");
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace lockstep {

/// Where `lib{name}.so` is looked for, in order: the folders of
/// LOCKSTEP_PLUGIN_PATH (separated by ':'), the folder of the running program,
/// and from there LOCKSTEP_PLUGIN_FOLDER (`../lib/lockstep`, or what CMake's
/// CMAKE_INSTALL_LIBDIR makes of it).
std::vector<std::filesystem::path> plugin_candidates(std::string_view name);

/// A loaded plugin: the first candidate that exists, else what the system's
/// loader finds. Programs that link lockstep::device with CMake carry the
/// plugin's folder in their RUNPATH.
/// Errors: throws kUnavailable with the folders searched, or with what the
/// system's loader said.
void* load_plugin(std::string_view name);

/// The address of a symbol of a loaded plugin.
/// Errors: throws kUnavailable if it is not there: another version's file.
void* plugin_symbol(void* plugin, const char* symbol);

} // namespace lockstep
