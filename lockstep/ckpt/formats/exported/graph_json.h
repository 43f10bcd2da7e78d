// SPDX-License-Identifier: BSD-3-Clause
//
// The graph of an exported program, read from its JSON.
#pragma once

#include "lockstep/ckpt/formats/exported/exported_graph.h"
#include "lockstep/ckpt/formats/exported/program_json.h"

namespace lockstep::ckpt::internal {

// Each reads the next value of `json` into `out`.
// Errors: kCorrupt (E_PROGRAM), kUnsafe (E_LIMIT, E_DEPTH).

/// A union of the schema: {"as_tensor": {"name": "x"}}.
Status read_argument(ProgramJson& json, ExportedArgument& out);
/// {"name": "x"}, as of a TensorArgument.
Status read_name(ProgramJson& json, std::string& out);
/// {"type": "cuda", "index": 0} as "cuda:0".
Status read_device(ProgramJson& json, std::string& out);
Status read_tensor_meta(ProgramJson& json, ExportedTensorMeta& out);
Status read_graph(ProgramJson& json, ExportedGraph& out);

} // namespace lockstep::ckpt::internal
