// SPDX-License-Identifier: BSD-3-Clause
//
// What a text of a program has Python import when it is loaded: the factory of
// a defaultdict, the class of an enum.
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace lockstep::ckpt::internal {

/// Bytes that a finding shows of a text of the file.
inline constexpr std::size_t kMaxTextBytes = 200;

/// "module.name", and whether it is dangerous, of `text` itself and of what its
/// escapes stand for.
std::map<std::string, bool> imports_in(std::string text);

} // namespace lockstep::ckpt::internal
