// SPDX-License-Identifier: BSD-3-Clause
//
// A batch that was read and cannot be given out.
#include <optional>

#include <gtest/gtest.h>

#include "lockstep/data/loader.h"
#include "tests/data/idx_fixture.h"

namespace lockstep {
namespace {

// Batches are the number of their first sample; batch `bad` cannot be given.
class Ungiven : public BatchSource<std::int64_t> {
 public:
  explicit Ungiven(std::int64_t bad) : bad_(bad) {}
  [[nodiscard]] std::int64_t size() const override {
    return 8;
  }
  [[nodiscard]] internal::ReadBatch reader(
      const LoaderOptions& /*options*/) const override {
    return [bad = bad_](
               std::span<const std::int64_t> indices,
               std::int64_t /*epoch*/) -> internal::GiveBatch {
      return [bad, first = indices.front()](void* to) {
        if (first == bad) {
          raise({.code = ErrorCode::kIo, .message = "cannot be given"});
        }
        *static_cast<std::optional<std::int64_t>*>(to) = first;
      };
    };
  }

 private:
  std::int64_t bad_;
};

TEST(Loader, StaysAtABatchThatCannotBeGiven) {
  for (const std::int64_t workers : {0, 2}) {
    for (const std::int64_t bad : {0, 4, 6}) {
      Loader loader(
          std::make_shared<Ungiven>(bad),
          {.batch_size = 2, .workers = workers});
      loader.start_epoch({0, 1, 2, 3, 4, 5, 6, 7}, 0);
      for (std::int64_t first = 0; first < 8; first += 2) {
        if (first == bad) {
          EXPECT_EQ(
              test::message_of([&] { loader.next(); }),
              "cannot be given");
          EXPECT_TRUE(test::error_if_any([&] { loader.next(); }));
          EXPECT_EQ(loader.position(), bad / 2);
          loader.skip(1);
        } else {
          EXPECT_EQ(loader.next(), first);
        }
      }
      EXPECT_FALSE(loader.next());
    }
  }
}

} // namespace
} // namespace lockstep
