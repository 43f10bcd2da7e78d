// SPDX-License-Identifier: BSD-3-Clause
//
// A pattern with a placeholder more than arguments does not compile.
#include "lockstep/base/strings.h"

#ifdef LOCKSTEP_MISUSE
#define PATTERN "{} of {} and {}"
#else
#define PATTERN "{} of {}"
#endif

std::string progress(int done, int total) {
  return lockstep::format(PATTERN, done, total);
}
