// SPDX-License-Identifier: BSD-3-Clause
//
// What the parsers of an exported program share: how its JSON is read and how
// much may be made of it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/json_scanner.h"

namespace lockstep::ckpt::internal {

/// A record of JSON that is being read. Ownership: views the text.
class ProgramJson {
 public:
  /// `record` stands in messages.
  ProgramJson(
      std::string_view text,
      std::string_view record,
      const Limits& limits);

  /// Reads an object. Members that no field names are skipped: minor versions
  /// of the schema add some. So is null.
  Status fields(std::initializer_list<JsonScanner::Field> fields) {
    return json_.fields(fields);
  }

  /// Reads a list, each element appended to `out` and read into it.
  template <class T, class Read>
  Status list(std::vector<T>& out, Read read) {
    return json_.elements([&]() -> Status {
      LOCKSTEP_TRY(count(sizeof(T)));
      return read(out.emplace_back());
    });
  }

  Status text(std::string& out);
  Status integer(std::int64_t& out);
  /// A number, or "Infinity", "-Infinity", "NaN".
  Status real(double& out);
  Status boolean(bool& out);

  /// Counts bytes that are made of the file. Errors: kUnsafe (E_LIMIT).
  Status count(std::uint64_t bytes) {
    return budget_->make(bytes);
  }
  /// One level deeper while it lives. Errors of `status`: kUnsafe (E_DEPTH).
  class Level {
   public:
    explicit Level(ProgramJson& json) : json_(json) {
      ++json_.depth_;
    }
    ~Level() {
      --json_.depth_;
    }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    [[nodiscard]] Status status() const;

   private:
    ProgramJson& json_;
  };

  /// An error at the next token (E_PROGRAM).
  Error error(std::string_view message);
  JsonScanner& scanner() noexcept {
    return json_;
  }

 private:
  JsonScanner json_;
  std::shared_ptr<Budget> budget_;
  std::uint64_t depth_ = 0;
};

} // namespace lockstep::ckpt::internal
