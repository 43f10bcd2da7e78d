// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/pytorch/no_pickle.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/archive/pt_archive.h"

namespace lockstep::ckpt::internal {
namespace {

struct ForeignArchive {
  // A record that no other archive has.
  std::string_view record = {};
  std::string_view what = {};
  std::string_view hint = {};
};

constexpr std::array kForeignArchives{
    ForeignArchive{
        "models/model.json",
        "a program of torch.export",
        "save its weights in Python: torch.save(torch.export.load(path)"
        ".state_dict, 'weights.pth')"},
    ForeignArchive{
        ".data/extern_modules",
        "a package of torch.package",
        "load the weights in Python with torch.package.PackageImporter, then "
        "torch.save them"}};

} // namespace

Error no_pickle_error(const ZipReader& zip) {
  for (const ForeignArchive& row : kForeignArchives) {
    if (zip.find(row.record) != nullptr) {
      return read_error(
          ErrorCode::kUnsupported,
          "E_WRONG_FORMAT",
          format("this is {}, not a checkpoint", row.what),
          std::string(row.hint));
    }
  }
  const std::span<const ZipRecord> records = zip.records();
  std::vector<std::string> names;
  names.reserve(records.size());
  for (const ZipRecord& record : records) {
    names.push_back(record.name);
  }
  return read_error(
      ErrorCode::kCorrupt,
      "E_NO_PICKLE",
      format(
          "the archive has no record 'data.pkl', but {}{}{}",
          counted(names.size(), "other record", "other records"),
          names.empty() ? "" : ": ",
          some_names(names)),
      std::ranges::all_of(records, is_frame_record, &ZipRecord::name)
          ? "torch.save failed while pickling: save again and read its error"
          : "");
}

} // namespace lockstep::ckpt::internal
