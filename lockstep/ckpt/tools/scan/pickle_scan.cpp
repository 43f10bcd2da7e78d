// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/scan/pickle_scan.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/pickle/stack_machine.h"
#include "lockstep/ckpt/tools/scan/name_scan.h"

namespace lockstep::ckpt {
namespace {

// Small at first: a file may hold many small pickles.
constexpr std::uint64_t kFirstWindow = 1ULL << 9;
constexpr std::uint64_t kWindowGrowth = 8;

bool may_be_cut(const Error& error) {
  return error.detail == "E_TRUNCATED" || error.detail == "E_PICKLE";
}

struct Pass {
  PickleScan scan = {};
  bool has_arrays = false;
  bool crosses_frames = false;
};

Pass scan_once(
    ByteSpan bytes,
    const PickleScanOptions& options,
    MemoReads reads,
    Grammar grammar = Grammar::kLoaded) {
  internal::NameScan names(bytes, options);
  StackMachine machine(
      PickleDecoder(bytes, grammar),
      options.limits.max_opcodes,
      names,
      std::move(reads));
  names.attach(machine.decoder());
  const Status status = machine.run();
  if (!status) {
    names.note_last(machine.decoder().instruction(), status.error());
  }
  Pass pass{
      .has_arrays = names.has_arrays(),
      .crosses_frames = machine.decoder().crosses_frames()};
  pass.scan = std::move(names).finish();
  pass.scan.consumed = machine.decoder().position();
  if (!status) {
    pass.scan.broken = status.error();
  }
  return pass;
}

// Adds what only the other reading of the same bytes names.
void add_names(PickleScan& scan, const PickleScan& other) {
  std::set<std::pair<std::string_view, bool>> known;
  for (const PickleName& name : scan.names) {
    known.emplace(name.name, name.is_nested);
  }
  std::vector<PickleName> added;
  std::ranges::copy_if(
      other.names,
      std::back_inserter(added),
      [&known](const PickleName& name) {
        return !known.contains({name.name, name.is_nested});
      });
  std::ranges::move(added, std::back_inserter(scan.names));
  if (!scan.broken) {
    scan.broken = corrupt_file(
        "E_FRAME",
        "an instruction crosses the end of its frame; Python's unpicklers read "
        "it in different ways");
    scan.broken->offset = 0;
  }
}

} // namespace

PickleScan scan_pickle(ByteSpan bytes, const PickleScanOptions& options) {
  Pass pass = scan_once(
      bytes,
      options,
      find_memo_reads(bytes, options.limits.max_opcodes, Grammar::kLoaded));
  if (pass.has_arrays) {
    // The search for reads ended at the first elements: keep all.
    pass = scan_once(bytes, options, MemoReads());
  }
  if (pass.crosses_frames) {
    const Pass other =
        scan_once(bytes, options, MemoReads(), Grammar::kBuffered);
    add_names(pass.scan, other.scan);
  }
  return std::move(pass.scan);
}

Result<PickleScan> scan_pickle_at(
    ByteSource& source,
    std::uint64_t offset,
    const PickleScanOptions& options) {
  const std::uint64_t rest = source.size() - offset;
  const std::uint64_t most = std::min(rest, options.limits.max_pickle_bytes);
  std::vector<std::byte> scratch;
  for (std::uint64_t window = std::min(kFirstWindow, most);;
       window = std::min(window * kWindowGrowth, most)) {
    LOCKSTEP_ASSIGN(const ByteSpan bytes, source.view(offset, window, scratch));
    PickleScan scan = scan_pickle(bytes, options);
    const bool is_cut = scan.broken && may_be_cut(*scan.broken);
    if (is_cut && window == most && most < rest) {
      scan.broken = read_error(
          ErrorCode::kUnsafe,
          "E_LIMIT",
          format("pickle is larger than {} bytes", most),
          "--max-pickle-bytes allows more");
    }
    if (!is_cut || window == most) {
      return scan;
    }
  }
}

} // namespace lockstep::ckpt
