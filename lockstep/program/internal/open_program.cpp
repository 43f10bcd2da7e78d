// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/program/internal/open_program.h"

#include <memory>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::program {

void refuse_program(
    const std::string& path,
    ErrorCode code,
    std::string message,
    std::string hint,
    std::string_view detail) {
  raise(
      {.code = code,
       .op = "program.load",
       .message = std::move(message),
       .hint = std::move(hint),
       .path = path,
       .detail = std::string(detail)});
}

ckpt::ExportedFile open_program(const std::string& path, bool use_mmap) {
  const auto in_path = [&path](Error error) {
    error.path = path;
    return error;
  };
  auto source = ckpt::open_source(path, {.use_mmap = use_mmap});
  if (!source) {
    raise(in_path(source.error()));
  }
  auto zip = ckpt::open_program_archive(*source);
  if (!zip) {
    raise(in_path(zip.error()));
  }
  if (!ckpt::is_exported(*zip)) {
    refuse_program(
        path,
        ErrorCode::kUnsupported,
        "no program of torch.export: the archive has no record archive_format "
        "that says pt2",
        "write it with torch.export.save, torch 2.6 or newer");
  }
  auto file = ckpt::read_exported(
      std::make_shared<const ckpt::ZipReader>(*std::move(zip)),
      {},
      ckpt::load);
  if (!file) {
    raise(in_path(file.error()));
  }
  return *std::move(file);
}

ckpt::ExportedModel& choose_model(
    const std::string& path,
    ckpt::ExportedFile& file,
    const std::string& wanted) {
  std::vector<std::string> names;
  for (ckpt::ExportedModel& model : file.models) {
    names.push_back(model.name);
    if (model.name == wanted || (wanted.empty() && file.models.size() == 1)) {
      return model;
    }
  }
  refuse_program(
      path,
      ErrorCode::kNotFound,
      wanted.empty() ? "the file holds several programs"
                     : format("the file has no program '{}'", escape(wanted)),
      "ProgramOptions::model is one of: " + join(names, ", "));
}

} // namespace lockstep::program
