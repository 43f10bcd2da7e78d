// SPDX-License-Identifier: BSD-3-Clause
#include "python/src/reports.h"

#include <string>
#include <utility>
#include <vector>

#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/verify.h"
#include "python/src/errors.h"
#include "python/src/reading.h"
#include "python/src/source.h"
#include "python/src/text.h"

namespace lockstep::python {
namespace nb = nanobind;
namespace {

// What `work` gives, while other threads of Python run.
template <class Work>
auto unlocked(const Work& work) {
  const nb::gil_scoped_release others_run;
  return work();
}

std::string path_of(const nb::bytes& path) {
  return {path.c_str(), path.size()};
}

template <class T, class Make>
nb::list list_of(const std::vector<T>& rows, const Make& make) {
  nb::list made;
  for (const T& row : rows) {
    made.append(make(row));
  }
  return made;
}

nb::object number(const std::optional<std::uint64_t>& value) {
  return value ? nb::object(nb::int_(*value)) : nb::object(nb::none());
}

nb::dict finding_dict(const ckpt::ScanFinding& finding) {
  nb::dict row;
  row["name"] = text(finding.name);
  row["is_dangerous"] = finding.is_dangerous;
  row["is_nested"] = finding.is_nested;
  row["record"] = text(finding.record);
  row["offset"] = finding.offset;
  row["count"] = finding.count;
  return row;
}

nb::dict note_dict(const Error& note) {
  nb::dict row;
  row["code"] = text(note.detail);
  row["message"] = text(note.message);
  row["record"] = text(note.record);
  row["offset"] = number(note.offset);
  return row;
}

nb::dict scan_dict(const ckpt::ScanReport& report) {
  nb::dict made;
  made["path"] = text(report.path);
  made["format"] = text(report.format);
  made["verdict"] = text(ckpt::verdict_name(report.verdict));
  made["pickles"] = report.pickles;
  made["names"] = report.names;
  made["script_classes"] = number(report.script_classes);
  made["operators"] = number(report.operators);
  made["findings"] = list_of(report.findings, finding_dict);
  made["notes"] = list_of(report.notes, note_dict);
  return made;
}

nb::list scan_path(const nb::bytes& path, const nb::dict& how) {
  const std::string name = path_of(path);
  const ckpt::ScanPathOptions options{.limits = load_options(how).limits};
  return list_of(
      take(unlocked([&] { return ckpt::scan_path(name, options); })),
      scan_dict);
}

nb::dict scan_bytes(
    const nb::bytes& data,
    const std::string& name,
    const nb::dict& how) {
  const auto source = bytes_source(data);
  const auto limits = load_options(how).limits;
  return scan_dict(unlocked([&] { return ckpt::scan(source, name, limits); }));
}

nb::dict problem_dict(const ckpt::Finding& finding) {
  nb::dict row;
  row["code"] = text(finding.detail);
  row["name"] = text(error_info(finding.code).name);
  row["message"] = text(finding.message);
  row["record"] = text(finding.record);
  row["hint"] = text(finding.hint);
  row["tensors"] = list_of(finding.tensors, [](const std::string& tensor) {
    return text(tensor);
  });
  return row;
}

nb::dict verify_dict(const ckpt::VerifyReport& report) {
  nb::dict made;
  made["records"] = report.records;
  made["checked_bytes"] = report.checked_bytes;
  made["tensors"] = report.tensors;
  made["errors"] = list_of(report.errors, problem_dict);
  made["warnings"] = list_of(report.warnings, problem_dict);
  return made;
}

nb::dict verify_path(const nb::bytes& path, const nb::dict& how) {
  const std::string name = path_of(path);
  const auto options = load_options(how);
  return verify_dict(
      take(unlocked([&] { return ckpt::verify(name, options); })));
}

nb::dict verify_bytes(
    const nb::bytes& data,
    const std::string& name,
    const nb::dict& how) {
  const auto source = bytes_source(data);
  const auto options = load_options(how);
  return verify_dict(
      take(unlocked([&] { return ckpt::verify(source, name, options); })));
}

nb::object digest_object(const std::vector<ckpt::DigestRow>& rows) {
  const nb::list made = list_of(rows, [](const ckpt::DigestRow& row) {
    return nb::make_tuple(
        text(row.name),
        text(row.type),
        text(row.shape),
        text(row.sha256));
  });
  return nb::make_tuple(text(ckpt::digest_text(rows)), made);
}

Result<std::vector<ckpt::DigestRow>> rows_of(
    const Result<ckpt::Checkpoint>& file,
    const ckpt::LoadOptions& options) {
  if (!file) {
    return Error(file.error());
  }
  return ckpt::digest_rows(file->root, options.limits);
}

nb::object digest_path(const nb::bytes& path, const nb::dict& how) {
  const std::string name = path_of(path);
  const auto options = load_options(how);
  return digest_object(take(
      unlocked([&] { return rows_of(ckpt::load(name, options), options); })));
}

nb::object digest_bytes(
    const nb::bytes& data,
    const std::string& name,
    const nb::dict& how) {
  const auto source = bytes_source(data);
  const auto options = load_options(how);
  return digest_object(take(unlocked(
      [&] { return rows_of(ckpt::load(source, name, options), options); })));
}

} // namespace

void register_reports(nb::module_& module) {
  module.def("scan_path", &scan_path);
  module.def("scan_bytes", &scan_bytes);
  module.def("verify_path", &verify_path);
  module.def("verify_bytes", &verify_bytes);
  module.def("digest_path", &digest_path);
  module.def("digest_bytes", &digest_bytes);
}

} // namespace lockstep::python
