// SPDX-License-Identifier: BSD-3-Clause
//
// Which class is taken for which in a test, beside what a task measures.
//   task.details = class_details(task, *data);
#pragma once

#include "lockstep/data/dataset.h"
#include "lockstep/train/task.h"

namespace lockstep::train {

/// A confusion of the classes of `data`, or of the pixels of its masks; none
/// for other targets, for many classes or pixels' worth of them, and where the
/// task measures it anyway. It never ends a run: outputs that are no scores of
/// these classes are not counted, and tell nothing.
Metrics class_details(const Task& task, const Dataset& data);

} // namespace lockstep::train
