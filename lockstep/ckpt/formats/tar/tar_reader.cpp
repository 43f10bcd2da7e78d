// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/tar/tar_reader.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/tar/tar_header.h"
#include "lockstep/ckpt/formats/tar/tar_members.h"
#include "lockstep/ckpt/formats/tar/tar_objects.h"
#include "lockstep/ckpt/pickle/allow_list.h"
#include "lockstep/ckpt/pickle/old_variables.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {
namespace {

constexpr std::array<std::string_view, 3> kNeeded{
    "storages",
    "tensors",
    "pickle"};

/// The three members that hold the checkpoint.
using Members = std::array<std::shared_ptr<ByteSource>, kNeeded.size()>;

class TarReader {
 public:
  TarReader(Members members, const LoadOptions& options)
      : members_(std::move(members)),
        options_(options),
        objects_(options.limits) {}

  Result<Checkpoint> run() {
    file_.era = "torch 0.1.9 or older";
    file_.byteorder = "little";
    file_.crc = CrcState::kAbsent;
    LOCKSTEP_TRY(in_record(objects_.read_storages(members_[0]), kNeeded[0]));
    LOCKSTEP_TRY(in_record(objects_.read_tensors(members_[1]), kNeeded[1]));
    LOCKSTEP_TRY(in_record(read_tree(), kNeeded[2]));
    file_.storages = std::move(objects_.storages);
    file_.class_sources = std::move(objects_.class_sources);
    return std::move(file_);
  }

 private:
  Status read_tree() {
    PickleStream stream(members_[2], 0, options_.limits);
    LOCKSTEP_ASSIGN(PickleResult pickle, stream.next(&objects_));
    file_.root = std::move(pickle.root);
    file_.globals = std::move(objects_.globals);
    std::ranges::move(pickle.globals, std::back_inserter(file_.globals));
    modernize_variables(file_.root, file_.globals);
    file_.warnings = std::move(pickle.warnings);
    if (stream.remaining() != 0) {
      file_.warnings.push_back(
          {.name = "W_TRAILING_PICKLE",
           .text = format(
               "{} the pickle at {:#x}",
               counted(stream.remaining(), "byte follows", "bytes follow"),
               stream.position())});
    }
    return check_allow_list(file_, options_);
  }

  Members members_;
  LoadOptions options_;
  internal::TarObjects objects_;
  Checkpoint file_;
};

Error no_checkpoint(const std::vector<std::string>& names) {
  std::string nested;
  for (const std::string& name : names) {
    const std::size_t slash = name.rfind('/');
    if (slash != std::string::npos && name.substr(slash + 1) == "storages") {
      nested = name.substr(0, slash);
    }
  }
  return read_error(
      ErrorCode::kUnsupported,
      "E_WRONG_FORMAT",
      format(
          "this is a tar archive, but not a checkpoint of torch 0.1; expected "
          "the "
          "members 'pickle', 'tensors' and 'storages', got {}",
          names.empty() ? "none" : some_names(names)),
      nested.empty() ? "unpack it with 'tar xf' and name a file in it"
                     : format(
                           "unpack it with 'tar xf' and name the folder '{}'",
                           escape(nested)));
}

std::string file_in(const std::string& folder, std::string_view name) {
  return folder + "/" + std::string(name);
}

} // namespace

Result<bool> claims_tar(const ReadInput& input) {
  return input.source != nullptr && is_tar(input.head);
}

Result<Checkpoint> read_tar(const ReadInput& input) {
  LOCKSTEP_ASSIGN(
      const TarMembers tar,
      TarMembers::open(input.source, input.options.limits));
  Members members;
  for (std::size_t i = 0; i < kNeeded.size(); ++i) {
    members[i] = tar.find(kNeeded[i]);
    if (members[i] == nullptr) {
      return no_checkpoint(tar.names());
    }
  }
  LOCKSTEP_ASSIGN(
      Checkpoint file,
      TarReader(std::move(members), input.options).run());
  file.format = "tar";
  file.file_bytes = input.source->size();
  std::ranges::copy(tar.warnings(), std::back_inserter(file.warnings));
  return file;
}

Result<bool> claims_tar_folder(const ReadInput& input) {
  if (input.source != nullptr || input.fs == nullptr) {
    return false;
  }
  return std::ranges::all_of(kNeeded, [&input](std::string_view name) {
    return input.fs->stat(file_in(input.path, name)).has_value();
  });
}

Result<Checkpoint> read_tar_folder(const ReadInput& input) {
  Members members;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < kNeeded.size(); ++i) {
    LOCKSTEP_ASSIGN(
        members[i],
        open_source(
            file_in(input.path, kNeeded[i]),
            {.use_mmap = input.options.use_mmap},
            *input.fs));
    bytes += members[i]->size();
  }
  add_file(input.options.limits, bytes);
  LOCKSTEP_ASSIGN(
      Checkpoint file,
      TarReader(std::move(members), input.options).run());
  file.format = "tar-folder";
  file.file_bytes = bytes;
  return file;
}

} // namespace lockstep::ckpt
