// SPDX-License-Identifier: BSD-3-Clause
//
// A variable of the environment, for a while.
//   const ScopedVariable rank("RANK", "1");
//   const ScopedVariable none("OMP_NUM_THREADS", nullptr);   // not set
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace lockstep::test {

/// Sets or takes away a variable, and puts back what was there. Threads: none
/// may read the environment meanwhile.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): said above
    if (const char* const before = std::getenv(name)) {
      before_ = before;
    }
    set(value);
  }
  ~ScopedVariable() {
    set(before_ ? before_->c_str() : nullptr);
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  void set(const char* value) const {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): said above
    static_cast<void>(
        value == nullptr ? ::unsetenv(name_) : ::setenv(name_, value, 1));
  }

  const char* name_;
  std::optional<std::string> before_;
};

} // namespace lockstep::test
