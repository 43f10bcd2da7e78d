// SPDX-License-Identifier: BSD-3-Clause
//
// What is fuzzed. One program holds all targets: `ckpt_fuzz --target=NAME ...`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/fs.h"

namespace lockstep::fuzz {

/// One row: a name, and what is done with an input. A crash, a sanitizer's
/// report, or more memory and reading than the input's size allows (`Watch`) is
/// the finding.
struct Target {
  std::string name = {};
  std::function<void(ByteSpan input)> run = {};
};

/// Those below, one for each format that is read from bytes, and "formats",
/// which is all of these.
std::vector<Target> targets();

/// The zip container alone: directory, local headers, records.
void fuzz_archive(ByteSpan input);
/// The pickle machine: every persistent id is a storage of 64 bytes.
void fuzz_pickle(ByteSpan input);
/// The metadata of a DCP folder: the input is `.metadata`, beside it lies one
/// file of data.
void fuzz_dcp(ByteSpan input);
/// Any file, edited and written in every format; a copy that does not read back
/// as the same tensors is a finding, too.
void fuzz_convert(ByteSpan input);
/// Programs of torch.export: the graph and its tables, whatever their
/// checksums.
void fuzz_exported(ByteSpan input);
/// `ckpt scan`, `verify` and `repair`.
void fuzz_scan(ByteSpan input);
void fuzz_verify(ByteSpan input);
void fuzz_salvage(ByteSpan input);

} // namespace lockstep::fuzz
