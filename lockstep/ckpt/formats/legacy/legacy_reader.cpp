// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <variant>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/legacy/legacy.h"
#include "lockstep/ckpt/formats/legacy/legacy_storage.h"
#include "lockstep/ckpt/pickle/allow_list.h"
#include "lockstep/ckpt/pickle/old_variables.h"
#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/ckpt/pickle/pickle_opcodes.h"
#include "lockstep/ckpt/pickle/pickle_stream.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {
namespace {

Error legacy_error(
    ErrorCode code,
    std::string_view detail,
    std::string message,
    std::uint64_t offset) {
  Error error = read_error(code, detail, std::move(message));
  error.offset = offset;
  return error;
}

bool is_magic(const Value& value) {
  const BigInt* integer = value.as_big_int();
  return integer != nullptr && integer->bytes == kLegacyMagic;
}

class LegacyReader {
 public:
  LegacyReader(
      const std::shared_ptr<ByteSource>& source,
      const LoadOptions& options)
      : source_(source),
        options_(options),
        stream_(source, 0, options.limits) {}

  Result<Checkpoint> run() {
    file_.format = "legacy";
    file_.byteorder = "little";
    file_.version = kLegacyVersion;
    file_.crc = CrcState::kAbsent;
    file_.file_bytes = source_->size();
    LOCKSTEP_TRY(read_magic());
    LOCKSTEP_TRY(read_version());
    LOCKSTEP_TRY(next(nullptr)); // sizes of C types: PyTorch ignores them
    LOCKSTEP_TRY(read_tree());
    file_.era = era();
    LOCKSTEP_TRY(scan_rest());
    LOCKSTEP_TRY(check_allow_list(file_, options_));
    return std::move(file_);
  }

 private:
  // Names count wherever they are: all five pickles can hide a call.
  Result<Value> next(PersistentIdHandler* handler) {
    LOCKSTEP_ASSIGN(PickleResult pickle, stream_.next(handler));
    std::ranges::move(pickle.globals, std::back_inserter(file_.globals));
    std::ranges::move(pickle.warnings, std::back_inserter(file_.warnings));
    return std::move(pickle.root);
  }

  Status read_magic() {
    const std::uint64_t begin = stream_.position();
    LOCKSTEP_ASSIGN(const Value magic, next(nullptr));
    if (!is_magic(magic)) {
      return legacy_error(
          ErrorCode::kCorrupt,
          "E_LEGACY_MAGIC",
          "the first pickle is not the magic number of a legacy checkpoint",
          begin);
    }
    return {};
  }

  Status read_version() {
    const std::uint64_t begin = stream_.position();
    LOCKSTEP_ASSIGN(const Value version, next(nullptr));
    const std::int64_t* number = version.as_int();
    if (number == nullptr || *number != kLegacyVersion) {
      return legacy_error(
          ErrorCode::kUnsupported,
          "E_LEGACY_VERSION",
          format(
              "expected protocol version {}, got {}",
              kLegacyVersion,
              number == nullptr ? std::string(version.type_name())
                                : std::to_string(*number)),
          begin);
    }
    return {};
  }

  Status read_tree() {
    internal::LegacyStorages storages;
    LOCKSTEP_ASSIGN(file_.root, next(&storages));
    LOCKSTEP_ASSIGN(const Value keys, next(nullptr));
    storages.fold_views(file_.root);
    modernize_variables(file_.root, file_.globals);
    LOCKSTEP_TRY(storages.read_blobs(stream_, source_, keys, file_.root));
    file_.storages = storages.storages();
    file_.class_sources = storages.class_sources();
    return {};
  }

  // `_rebuild_tensor_v2` came with 0.4.
  [[nodiscard]] std::string era() const {
    const auto uses = [this](std::string_view name) {
      return std::ranges::any_of(file_.globals, [name](const GlobalUse& use) {
        return use.name == name;
      });
    };
    if (uses("torch._utils._rebuild_tensor_v3")) {
      return "torch 2.1 or newer, on request";
    }
    return uses("torch._utils._rebuild_tensor") ? "torch 0.1.10 to 0.3"
                                                : "torch 0.4 to 1.5, or newer "
                                                  "on request";
  }

  // PyTorch reads the next object of a stream with the next torch.load.
  Status scan_rest() {
    const std::uint64_t begin = stream_.position();
    if (stream_.remaining() == 0) {
      return {};
    }
    PickleStream rest(source_, begin, options_.limits);
    internal::LegacyStorages storages;
    std::size_t pickles = 0;
    std::map<std::string, std::size_t> rows;
    for (; rest.remaining() != 0; ++pickles) {
      auto pickle = rest.next(&storages);
      if (!pickle && is_spent(options_.limits)) {
        return std::move(pickle).error();
      }
      if (!pickle) {
        break; // foreign bytes
      }
      for (GlobalUse& use : pickle->globals) {
        const auto [row, is_new] =
            rows.try_emplace(use.name, file_.globals.size());
        if (is_new) {
          file_.globals.push_back(std::move(use));
        } else {
          file_.globals[row->second].count += use.count;
        }
      }
    }
    file_.warnings.push_back(
        {.name = "W_TRAILING",
         .text = format(
             "{} the last storage at {:#x}{}",
             counted(source_->size() - begin, "byte follows", "bytes follow"),
             begin,
             pickles == 0
                 ? ""
                 : ", pickles among them: PyTorch reads the first object")});
    return {};
  }

  std::shared_ptr<ByteSource> source_;
  LoadOptions options_;
  PickleStream stream_;
  Checkpoint file_;
};

} // namespace

bool starts_like_legacy(ByteSpan head) {
  const auto pickle = read_pickle(head, nullptr, {});
  return pickle && is_magic(pickle->root);
}

Result<bool> claims_legacy(const ReadInput& input) {
  if (input.source == nullptr) {
    return false;
  }
  const ByteSpan head =
      input.head.first(std::min(input.head.size(), kLegacyHeadBytes));
  const std::string_view text = as_text(head);
  // A file that is cut inside the number has its length at least.
  if (starts_like_pickle(text) && text.size() > 4 &&
      text[2] == static_cast<char>(opcode_byte(Op::kLong1)) &&
      static_cast<std::size_t>(text[3]) == kLegacyMagic.size()) {
    return true;
  }
  const auto pickle = read_pickle(head, nullptr, input.options.limits);
  return pickle && pickle->root.as_big_int() != nullptr;
}

Result<Checkpoint> read_legacy(const ReadInput& input) {
  return LegacyReader(input.source, input.options).run();
}

} // namespace lockstep::ckpt
