// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/scan/scan_report.h"

#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/pickle/globals.h"

namespace lockstep::ckpt::internal {
namespace {

// What the program defines. ':' stands before a dotted name, which could walk
// out of it.
bool is_script_class(std::string_view name) {
  return name.starts_with("__torch__.") &&
         name.find(':') == std::string_view::npos;
}

} // namespace

ScanCollector::ScanCollector(
    std::string path,
    std::uint64_t bytes,
    const Limits& limits)
    : limits_(counting(limits, bytes)) {
  report_.path = std::move(path);
}

void ScanCollector::add(const PickleScan& scan, const Place& place) {
  ++report_.pickles;
  has_changed_names_ = has_changed_names_ || scan.has_changed_names;
  for (const PickleStorage& storage : scan.storages) {
    storage_keys_.insert(storage.key);
  }
  for (const PickleName& name : scan.names) {
    names_.insert(name.name);
    if (place.is_script && !name.is_nested && is_script_class(name.name)) {
      script_classes_.insert(name.name);
      continue;
    }
    const GlobalInfo info = find_global(name.name);
    if (!info.is_harmless() && has_room_for(name.name, place)) {
      report_.findings.push_back(
          {.name = name.name,
           .is_dangerous = info.is_dangerous(),
           .is_nested = name.is_nested,
           .record = place.record,
           .offset = place.offset + name.offset,
           .count = name.count});
    }
  }
  for (const PickleName& name : scan.unlikely) {
    add_warning(
        "W_UNLIKELY",
        format(
            "pickle, unlike joblib, would ask for '{}'",
            escape(name.name, 100)),
        {.record = place.record, .offset = place.offset + name.offset});
  }
  if (scan.nested != 0) {
    is_hiding_ = true;
    add_warning(
        "W_NESTED_PICKLE",
        format(
            "{} inside strings of the pickle",
            counted(scan.nested, "pickle is", "pickles are")),
        place);
  }
  if (scan.broken) {
    add_unreadable(*scan.broken, place);
  }
}

void ScanCollector::add_code(const std::string& name, const Place& place) {
  if (has_room_for(name, place)) {
    report_.findings.push_back(
        {.name = name,
         .is_dangerous = true,
         .record = place.record,
         .offset = place.offset,
         .count = 1});
  }
}

Status ScanCollector::count_finding(
    const std::string& name,
    const std::string& record) {
  return limits_.budget->make(
      sizeof(ScanFinding) + name.size() + record.size());
}

void ScanCollector::add_finding(ScanFinding finding) {
  report_.findings.push_back(std::move(finding));
}

void ScanCollector::add_operators(std::uint64_t count) {
  report_.operators = report_.operators.value_or(0) + count;
}

bool ScanCollector::has_room(Status made) {
  if (made) {
    return true;
  }
  if (!std::exchange(is_full_, true)) {
    is_unreadable_ = true;
    report_.notes.push_back(std::move(made).error());
  }
  return false;
}

bool ScanCollector::has_room_for(const std::string& name, const Place& place) {
  return has_room(count_finding(name, place.record));
}

void ScanCollector::add_note(Error note) {
  if (has_room(limits_.budget->make(
          sizeof(Error) + note.message.size() + note.hint.size() +
          note.record.size()))) {
    report_.notes.push_back(std::move(note));
  }
}

void ScanCollector::note_unlikely(const PickleScan& scan, const Place& place) {
  if (!place.record.empty()) {
    return; // a text of an archive, which nobody unpickles
  }
  for (const PickleName& name : scan.names) {
    Place here = place;
    here.offset += name.offset;
    add_warning(
        "W_UNLIKELY",
        format(
            "as a pickle the bytes would ask for '{}': taken for no pickle",
            escape(name.name, 100)),
        here);
  }
}

void ScanCollector::set_script() {
  report_.script_classes = 0;
}

void ScanCollector::add_unreadable(Error error) {
  is_unreadable_ = true;
  if (error.detail == "E_LIMIT" && !std::exchange(is_full_, true)) {
    report_.notes.push_back(std::move(error)); // it says why no more is told
    return;
  }
  add_note(std::move(error));
}

void ScanCollector::add_unreadable(Error error, const Place& place) {
  error.record = place.record;
  error.offset = place.offset + error.offset.value_or(0);
  add_unreadable(std::move(error));
}

void ScanCollector::add_warning(
    std::string_view detail,
    std::string message,
    const Place& place) {
  add_note(
      {.code = ErrorCode::kUnsafe,
       .op = "ckpt.scan",
       .message = std::move(message),
       .record = place.record,
       .offset = place.offset,
       .detail = std::string(detail)});
}

void ScanCollector::set_format(std::string_view format) {
  if (report_.format.empty()) {
    report_.format = format;
  }
}

ScanReport ScanCollector::finish() {
  report_.names = names_.size();
  if (report_.script_classes) {
    report_.script_classes = script_classes_.size();
  }
  if (!report_.findings.empty() || is_hiding_) {
    report_.verdict = Verdict::kFound;
  } else if (is_unreadable_) {
    report_.verdict = Verdict::kUnreadable;
  } else {
    report_.verdict =
        report_.format.empty() ? Verdict::kOther : Verdict::kClean;
  }
  return std::move(report_);
}

} // namespace lockstep::ckpt::internal
