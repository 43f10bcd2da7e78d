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

/// Pairs of a module and a name that are compared in one program. A text with
/// one of each takes none of them.
inline constexpr std::size_t kMaxPairs = 10'000;

/// "module.name", and whether it is dangerous, of `text` itself and of what its
/// escapes stand for. `pairs`: those that are left. A text that has more counts
/// as dangerous.
std::map<std::string, bool> imports_in(std::string text, std::size_t& pairs);

} // namespace lockstep::ckpt::internal
