// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/scan/pickle_scan.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/pickle/dangerous_names.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/stack_machine.h"
#include "lockstep/ckpt/pickle/text_codec.h"
#include "lockstep/ckpt/tools/scan/name_scan.h"

namespace lockstep::ckpt {
namespace {

// Small at first: a file may hold many small pickles.
constexpr std::uint64_t kFirstWindow = 1ULL << 9;
constexpr std::uint64_t kWindowGrowth = 8;

struct Pass {
  PickleScan scan = {};
  bool has_arrays = false;
  bool begins_with_objects = false;
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
  if (options.has_joblib_arrays) {
    names.skip_in(machine.decoder());
  }
  Status status = machine.run();
  // It ends where the file cannot have so many, which is no part of a name.
  Status counted =
      budget_of(options.limits, bytes.size())->step(machine.opcodes());
  if (status && !counted) {
    status = std::move(counted).error();
  }
  if (!status) {
    names.note_last(machine.decoder().instruction(), status.error());
  } else if (const internal::Sketch* root = machine.top()) {
    names.note_root(*root);
  }
  Pass pass{
      .has_arrays = names.has_arrays(),
      .begins_with_objects = names.begins_with_objects(),
      .crosses_frames = machine.decoder().crosses_frames()};
  const bool names_touch_end = names.touches_end();
  pass.scan = std::move(names).finish();
  pass.scan.consumed = machine.decoder().position();
  if (!status) {
    pass.scan.broken = status.error();
  }
  pass.scan.is_cut = names_touch_end || ((!status || pass.crosses_frames) &&
                                         machine.decoder().touches_end());
  return pass;
}

// What only the other reading of the same bytes names.
std::vector<PickleName> added_names(
    const PickleScan& scan,
    const PickleScan& other) {
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
  return added;
}

void append_names(PickleScan& scan, std::vector<PickleName> added) {
  std::ranges::move(added, std::back_inserter(scan.names));
}

void add_buffered(PickleScan& scan, const PickleScan& other) {
  append_names(scan, added_names(scan, other));
  scan.is_cut = scan.is_cut || other.is_cut;
  if (!scan.broken) {
    scan.broken = corrupt_file(
        "E_FRAME",
        "an instruction crosses the end of its frame; Python's unpicklers read "
        "it in different ways");
    scan.broken->offset = 0;
  }
}

// To all but joblib the elements of its arrays are opcodes, up to the first
// error; behind a STOP among them the next load goes on.
PickleScan scan_plainly(ByteSpan bytes, PickleScanOptions options) {
  options.has_joblib_arrays = false;
  options.collect_texts = false;
  PickleScan all;
  std::set<std::pair<std::string, bool>> known;
  while (!all.broken && all.consumed < bytes.size()) {
    PickleScan next = scan_pickle(bytes.subspan(all.consumed), options);
    for (PickleName& name : next.names) {
      if (known.emplace(name.name, name.is_nested).second) {
        name.offset += all.consumed;
        all.names.push_back(std::move(name));
      }
    }
    all.nested += next.nested;
    all.broken = std::move(next.broken);
    if (all.broken) {
      all.broken->offset = all.consumed + all.broken->offset.value_or(0);
    }
    all.consumed += next.consumed;
    all.is_cut = next.is_cut;
  }
  return all;
}

std::string_view last_part(std::string_view full) {
  const std::size_t colon = full.find(':'); // before a dotted name
  return full.substr(
      (colon == std::string_view::npos ? full.rfind('.') : colon) + 1);
}

// What a pickle of objects would name if its texts came out of the wrong memo:
// values that are no texts, where Python stops, or names in foreign modules
// that are called like the harmless ones that it has.
class Misreadings {
 public:
  Misreadings(const PickleScan& scan, const PickleScan& plain) : plain_(plain) {
    for (const PickleName& name : scan.names) {
      if (find_global(name.name).is_harmless()) {
        parts_.insert(last_part(name.name));
      }
    }
  }

  [[nodiscard]] bool contain(const PickleName& name) const {
    return name.name == "?" ? !may_be_asked_for(name, plain_)
                            : !is_dangerous_path(name.name) &&
                                  parts_.contains(last_part(name.name));
  }

 private:
  const PickleScan& plain_;
  std::set<std::string_view> parts_;
};

// Numbers may spell a name by chance, but none that a module could have.
void add_plain(
    PickleScan& scan,
    const PickleScan& plain,
    bool begins_with_objects) {
  auto added = added_names(scan, plain);
  const Misreadings misreadings(scan, plain);
  const bool is_telling =
      std::ranges::any_of(added, [&](const PickleName& name) {
        return begins_with_objects ? !misreadings.contain(name)
                                   : may_be_asked_for(name, plain);
      });
  if (is_telling) {
    append_names(scan, std::move(added));
    scan.nested = std::max(scan.nested, plain.nested);
  } else if (begins_with_objects) {
    scan.unlikely = std::move(added);
  }
  scan.is_cut = scan.is_cut || plain.is_cut;
}

bool has_only(std::string_view text, std::string_view marks) {
  return std::ranges::all_of(text, [marks](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return std::isalnum(byte) != 0 || byte >= 0x80 ||
           marks.find(c) != std::string_view::npos;
  });
}

// "my-module.f", but no sentence.
bool may_be_name(std::string_view full) {
  const std::size_t colon = full.find(':'); // before a dotted name
  const std::size_t end =
      colon == std::string_view::npos ? full.rfind('.') : colon;
  const std::string_view module = full.substr(0, end);
  const std::string_view name = full.substr(end + 1);
  return !module.empty() && !name.empty() && has_only(module, "_-.") &&
         has_only(name, "_.") && (name[0] < '0' || name[0] > '9') &&
         internal::is_utf8_with_surrogates(full);
}

} // namespace

bool may_be_asked_for(const PickleName& name, const PickleScan& scan) {
  // Where a name of other values is asked for, Python stops.
  return name.name == "?"
             ? !scan.broken || scan.broken->offset != std::optional(name.offset)
             : may_be_name(name.name);
}

PickleScan scan_pickle(ByteSpan bytes, const PickleScanOptions& options) {
  Pass pass = scan_once(
      bytes,
      options,
      find_memo_reads(bytes, options.limits.max_opcodes, Grammar::kLoaded));
  if (pass.has_arrays) {
    // The search for reads ended at the first elements: keep all.
    pass = scan_once(bytes, options, MemoReads());
    add_plain(
        pass.scan,
        scan_plainly(bytes, options),
        pass.begins_with_objects);
  }
  if (pass.crosses_frames) {
    const Pass other =
        scan_once(bytes, options, MemoReads(), Grammar::kBuffered);
    add_buffered(pass.scan, other.scan);
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
  const auto budget = budget_of(options.limits, source.size());
  for (std::uint64_t window = std::min(kFirstWindow, most);;
       window = std::min(window * kWindowGrowth, most)) {
    if (Status read = budget->read(window); !read) {
      Error error = std::move(read).error();
      error.offset = offset;
      return error;
    }
    LOCKSTEP_ASSIGN(const ByteSpan bytes, source.view(offset, window, scratch));
    PickleScan scan = scan_pickle(bytes, options);
    if (scan.is_cut && window == most && most < rest) {
      scan.broken = read_error(
          ErrorCode::kUnsafe,
          "E_LIMIT",
          format("pickle is larger than {} bytes", most),
          "Limits::max_pickle_bytes allows more");
    }
    if (!scan.is_cut || window == most) {
      return scan;
    }
  }
}

} // namespace lockstep::ckpt
