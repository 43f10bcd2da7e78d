// SPDX-License-Identifier: BSD-3-Clause
//
// What a job remembers when its launcher starts all ranks again: a line of text
// beside the folders of its attempts, which torchrun and `lockstep run` make.
//   launch::write_job_note("runs/a");            // in the first attempt
//   if (launch::is_restarted()) { ... launch::read_job_note() ... }
#pragma once

#include <string>

namespace lockstep::launch {

/// Whether the launcher has started the ranks of this job before.
bool is_restarted();

/// Replaces the note; does nothing without a launcher that starts ranks again.
/// One rank of a machine writes. Threads: none may set variables meanwhile.
void write_job_note(const std::string& text);

/// The note of this machine; "" if there is none.
std::string read_job_note();

} // namespace lockstep::launch
