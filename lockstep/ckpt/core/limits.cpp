// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <limits>

#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/fixed_limits.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt {
namespace {

constexpr std::array kLimits{
    LimitInfo{
        "max-pickle-bytes",
        "bytes",
        "size of one pickle",
        &Limits::max_pickle_bytes},
    LimitInfo{
        "max-opcodes",
        "opcodes",
        "instructions of one pickle",
        &Limits::max_opcodes},
    LimitInfo{
        "max-nodes",
        "values",
        "values that one pickle makes, and names in a listing",
        &Limits::max_nodes},
    LimitInfo{"max-depth", "levels", "nesting of values", &Limits::max_depth},
    LimitInfo{
        "max-records",
        "records",
        "entries of an archive",
        &Limits::max_records},
    LimitInfo{
        "max-ratio",
        "times",
        "size of an inflated record against its size in the file",
        &Limits::max_ratio},
    LimitInfo{
        "max-expanded-bytes",
        "bytes",
        "what views may repeat beyond the bytes of their storages",
        &Limits::max_expanded_bytes},
    LimitInfo{
        "max-made-bytes",
        "bytes",
        "what may be made of a file beyond 16 for each of its bytes",
        &Limits::max_made_bytes},
    LimitInfo{
        "max-steps",
        "steps",
        "what may be done for a file beyond 64 for each of its bytes",
        &Limits::max_steps},
};

constexpr std::array kFixed{
    FixedLimit{
        "made-per-byte",
        "bytes",
        "made of each byte of a file",
        "a value of one byte in a pickle takes 32 and more: lists of millions "
        "need max-made-bytes",
        kMadePerByte},
    FixedLimit{
        "steps-per-byte",
        "steps",
        "done for each byte of a file",
        "an opcode, and some twenty walks over its value",
        kStepsPerByte},
    FixedLimit{
        "views-per-byte",
        "bytes",
        "of views that are read or written for each of their storages",
        "tied weights have two or three names",
        kViewsPerByte},
    FixedLimit{
        "tree-levels",
        "levels",
        "of values, whatever max-depth says",
        "what 8 MiB of stack hold",
        kMaxTreeDepth},
    FixedLimit{
        "name-bytes",
        "bytes",
        "of the name of a record",
        "as the longest path of Linux",
        kMaxNameBytes},
    FixedLimit{
        "dimensions",
        "dimensions",
        "of a tensor",
        "as PyTorch's kernels",
        kMaxDimensions},
    FixedLimit{
        "integer-bytes",
        "bytes",
        "of one whole number",
        "seeds and hashes have a few dozen",
        kMaxIntegerBytes},
    FixedLimit{
        "safetensors-header-bytes",
        "bytes",
        "of the header of a safetensors file",
        "as the safetensors package",
        kMaxSafetensorsHeader},
    FixedLimit{
        "index-bytes",
        "bytes",
        "of an index of shards",
        "it is searched before it is known to be one",
        kMaxIndexBytes},
    FixedLimit{
        "npy-header-bytes",
        "bytes",
        "of the header of a NumPy array",
        "NumPy's own limit is 10,000",
        kMaxNpyHeader},
    FixedLimit{
        "tar-header-bytes",
        "bytes",
        "of an extended header of a tar file",
        "it holds a few short records",
        kMaxTarHeader},
    FixedLimit{
        "dcp-path-keys",
        "keys",
        "of a path in a DCP folder",
        "each is a level of the tree",
        kMaxDcpPath},
    FixedLimit{
        "json-levels",
        "levels",
        "of JSON",
        "as the safetensors package",
        kMaxJsonLevels},
    FixedLimit{
        "program-levels",
        "levels",
        "of graphs in the graph of a program",
        "torch.export makes three or four",
        kMaxProgramLevels},
    FixedLimit{
        "module-levels",
        "levels",
        "of modules in a model.json or a program",
        "they are read, and freed, by recursion",
        kMaxModuleLevels},
    FixedLimit{
        "archive-levels",
        "archives",
        "in archives that scan looks into",
        "PyTorch puts one into another at most",
        kMaxArchiveLevels},
    FixedLimit{
        "shard-headers",
        "files",
        "that tell whether a shard is the whole",
        "each is opened; the largest models have hundreds",
        kMaxShardHeaders},
    FixedLimit{
        "matched-entries",
        "entries",
        "that match compares with as many",
        "time and memory are their square",
        kMaxMatched},
    FixedLimit{
        "pattern-steps",
        "steps",
        "of backtracking for one name",
        "a tenth of a second; the pattern is the user's",
        kMaxPatternSteps},
};

} // namespace

std::span<const LimitInfo> limit_table() {
  return kLimits;
}

std::span<const FixedLimit> fixed_limits() {
  return kFixed;
}

Limits expanding(Limits limits) {
  limits.max_ratio = std::numeric_limits<std::uint64_t>::max();
  limits.max_expanded_bytes = std::numeric_limits<std::uint64_t>::max();
  limits.max_made_bytes = std::numeric_limits<std::uint64_t>::max();
  limits.max_steps = std::numeric_limits<std::uint64_t>::max();
  return limits;
}

} // namespace lockstep::ckpt
