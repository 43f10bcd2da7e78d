// SPDX-License-Identifier: BSD-3-Clause
//
// Where two lists of lines that ought to be equal are not.
//   line_differences({"a", "b"}, {"a", "c"});  // "'b' and 'c'"
#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// One text for each place where they differ; of the longer list the other has
/// "nothing" there. Foreign text is made safe to show.
std::vector<std::string> line_differences(
    const std::vector<std::string>& first,
    const std::vector<std::string>& second);

} // namespace lockstep
