// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/dist/timed_store.h"

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::dist::internal {
namespace {

using std::chrono::milliseconds;
using Bytes = std::vector<std::uint8_t>;
using Keys = std::vector<std::string>;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

/// What the store says itself, of a key that does not come, is first.
constexpr milliseconds kGrace{1000};

/// Makes the calls of one connection in threads that can be left behind.
class Caller {
 public:
  explicit Caller(std::string name) : name_(std::move(name)) {}

  [[nodiscard]] const std::string& name() const {
    return name_;
  }

  template <class Function>
  auto call(milliseconds timeout, Function function) const {
    using T = std::invoke_result_t<Function>;
    if (left_->load() != 0) {
      raise_late("an earlier call still waits");
    }
    const auto work = std::make_shared<Work<T>>(std::move(function));
    auto end = work->task.get_future();
    std::thread thread([work, left = left_] {
      work->task();
      if (work->is_settled.test_and_set()) {
        --*left;
      }
    });
    const milliseconds most = timeout + kGrace;
    if (end.wait_for(most) == std::future_status::timeout) {
      ++*left_;
      if (!work->is_settled.test_and_set()) {
        thread.detach();
        raise_late(format(
            "it has not for {:.1f} s",
            std::chrono::duration<double>(most).count()));
      }
      --*left_; // it has ended just now
    }
    thread.join();
    return end.get();
  }

  [[noreturn]] void raise_ended(const c10::Error& error) const {
    raise(
        {.code = ErrorCode::kUnavailable,
         .op = "dist.store",
         .message = format(
             "{} does not answer any more; {}",
             name_,
             error.what_without_backtrace()),
         .hint = "the process that holds it has ended: see its output first",
         .detail = "E_RANKS_LATE"});
  }

 private:
  template <class T>
  struct Work {
    template <class Function>
    explicit Work(Function function) : task(std::move(function)) {}
    std::packaged_task<T()> task;
    /// By the end of the call, or by leaving it behind.
    std::atomic_flag is_settled = {};
  };

  [[noreturn]] void raise_late(const std::string& how) const {
    raise(
        {.code = ErrorCode::kTimeout,
         .op = "dist.store",
         .message = format("{} does not answer; {}", name_, how),
         .hint = "the process that holds it is stopped or cannot be reached",
         .detail = "E_RANKS_LATE"});
  }

  std::string name_;
  /// How many calls were left behind, and still wait.
  std::shared_ptr<std::atomic<int>> left_ =
      std::make_shared<std::atomic<int>>(0);
};

class TimedStore final : public c10d::Store {
  template <class Function>
  auto call(milliseconds timeout, Function function) const {
    try {
      return caller_.call(
          timeout,
          [inner = inner_, function = std::move(function)] {
            return function(*inner);
          });
    } catch (const c10::DistNetworkError& error) {
      caller_.raise_ended(error);
    }
  }

 public:
  TimedStore(StorePtr inner, Caller caller, milliseconds timeout)
      : c10d::Store(timeout),
        inner_(std::move(inner)),
        caller_(std::move(caller)) {}

  // With a connection of its own, which is late or in time by itself.
  StorePtr clone() override {
    return c10::make_intrusive<TimedStore>(
        call(timeout_, [](Store& store) { return store.clone(); }),
        Caller(caller_.name()),
        timeout_);
  }

  void setTimeout(const milliseconds& timeout) override {
    timeout_ = timeout;
    inner_->setTimeout(timeout);
  }
  bool hasExtendedApi() const override {
    return inner_->hasExtendedApi();
  }

  void set(const std::string& key, const Bytes& value) override {
    call(timeout_, [key, value](Store& store) { store.set(key, value); });
  }
  Bytes compareSet(
      const std::string& key,
      const Bytes& expected,
      const Bytes& desired) override {
    return call(timeout_, [key, expected, desired](Store& store) {
      return store.compareSet(key, expected, desired);
    });
  }
  Bytes get(const std::string& key) override {
    return call(timeout_, [key](Store& store) { return store.get(key); });
  }
  std::int64_t add(const std::string& key, std::int64_t value) override {
    return call(timeout_, [key, value](Store& store) {
      return store.add(key, value);
    });
  }
  bool deleteKey(const std::string& key) override {
    return call(timeout_, [key](Store& store) { return store.deleteKey(key); });
  }
  bool check(const Keys& keys) override {
    return call(timeout_, [keys](Store& store) { return store.check(keys); });
  }
  std::int64_t getNumKeys() override {
    return call(timeout_, [](Store& store) { return store.getNumKeys(); });
  }
  void wait(const Keys& keys) override {
    wait(keys, timeout_);
  }
  void wait(const Keys& keys, const milliseconds& timeout) override {
    call(timeout, [keys, timeout](Store& store) { store.wait(keys, timeout); });
  }
  void append(const std::string& key, const Bytes& value) override {
    call(timeout_, [key, value](Store& store) { store.append(key, value); });
  }
  std::vector<Bytes> multiGet(const Keys& keys) override {
    return call(timeout_, [keys](Store& store) {
      return store.multiGet(keys);
    });
  }
  void multiSet(const Keys& keys, const std::vector<Bytes>& values) override {
    call(timeout_, [keys, values](Store& store) {
      store.multiSet(keys, values);
    });
  }

 private:
  StorePtr inner_;
  Caller caller_;
};

} // namespace

StorePtr timed_store(
    const std::string& name,
    milliseconds timeout,
    const std::function<StorePtr()>& make) {
  const Caller caller(name);
  return c10::make_intrusive<TimedStore>(
      caller.call(timeout, make),
      caller,
      timeout);
}

} // namespace lockstep::dist::internal
