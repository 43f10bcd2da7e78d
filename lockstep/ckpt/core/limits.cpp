// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <limits>

#include "lockstep/ckpt/checkpoint.h"

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
        "what a file's pickles may make beyond 16 for each of their bytes",
        &Limits::max_made_bytes},
};

constexpr std::array kFixed{
    FixedLimit{"name-bytes", "bytes", "of the name of a record", 4096},
    FixedLimit{"dimensions", "dimensions", "of a tensor", 64},
    FixedLimit{"integer-bytes", "bytes", "of one whole number", 1024},
    FixedLimit{
        "safetensors-header-bytes",
        "bytes",
        "of the header of a safetensors file",
        100'000'000},
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
  return limits;
}

} // namespace lockstep::ckpt
