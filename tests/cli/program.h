// SPDX-License-Identifier: BSD-3-Clause
//
// The program that these tests run.
#pragma once

#include <string>

namespace lockstep::test {

inline const std::string kProgram = LOCKSTEP_BINARY_DIR "/bin/lockstep";

} // namespace lockstep::test
