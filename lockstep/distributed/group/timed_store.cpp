// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/group/timed_store.h"

#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
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

/// The calls of one connection, and the threads that make them.
/// Ownership: shared with the threads, some of which may be left behind.
struct Calls {
  struct Call {
    std::function<void()> run = {};
    bool has_ended = false;
    bool is_left = false;
  };

  std::mutex mutex = {};
  std::condition_variable has_next = {};
  std::condition_variable has_ended = {};
  /// Guarded by `mutex`, as all that follows and the members of a call.
  std::deque<std::shared_ptr<Call>> next = {};
  /// Threads that wait for a call.
  std::size_t idle = 0;
  /// How many calls were left behind, and still wait.
  int left = 0;
  bool is_over = false;

  /// Makes calls; one thread stays for the calls to come.
  void work() {
    std::unique_lock lock(mutex);
    while (idle == 0 || !next.empty()) {
      ++idle;
      has_next.wait(lock, [this] { return is_over || !next.empty(); });
      --idle;
      if (next.empty()) {
        break;
      }
      const std::shared_ptr<Call> call = std::move(next.front());
      next.pop_front();
      lock.unlock();
      std::exchange(call->run, {})();
      lock.lock();
      call->has_ended = true;
      left -= call->is_left ? 1 : 0;
      has_ended.notify_all();
    }
    has_ended.notify_all();
  }
};

/// Makes the calls of one connection in a thread that can be left behind.
class Caller {
 public:
  explicit Caller(std::string name) : name_(std::move(name)) {}
  Caller(Caller&&) = default;
  Caller& operator=(Caller&&) = delete;
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller() {
    if (calls_ != nullptr) {
      std::unique_lock lock(calls_->mutex);
      calls_->is_over = true;
      calls_->has_next.notify_all();
      calls_->has_ended.wait(lock, [this] { return calls_->idle == 0; });
    }
  }

  [[nodiscard]] const std::string& name() const {
    return name_;
  }

  template <class Function>
  auto call(milliseconds timeout, Function function) const {
    using T = std::invoke_result_t<Function>;
    const auto task =
        std::make_shared<std::packaged_task<T()>>(std::move(function));
    auto end = task->get_future();
    run(timeout, [task] { (*task)(); });
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
  /// Returns when `function` has.
  void run(milliseconds timeout, std::function<void()> function) const {
    const auto call =
        std::make_shared<Calls::Call>(Calls::Call{.run = std::move(function)});
    std::unique_lock lock(calls_->mutex);
    if (calls_->left != 0) {
      raise_late("an earlier call still waits");
    }
    if (calls_->idle <= calls_->next.size()) {
      std::thread([calls = calls_] { calls->work(); }).detach();
    }
    calls_->next.push_back(call);
    calls_->has_next.notify_one();
    const milliseconds most = timeout + kGrace;
    const bool has_ended = calls_->has_ended.wait_for(lock, most, [&call] {
      return call->has_ended;
    });
    if (!has_ended) {
      call->is_left = true;
      ++calls_->left;
      raise_late(format(
          "it has not for {:.1f} s",
          std::chrono::duration<double>(most).count()));
    }
  }

  [[noreturn]] void raise_late(const std::string& how) const {
    raise(
        {.code = ErrorCode::kTimeout,
         .op = "dist.store",
         .message = format("{} does not answer; {}", name_, how),
         .hint = "the process that holds it is stopped or cannot be reached",
         .detail = "E_RANKS_LATE"});
  }

  std::string name_;
  std::shared_ptr<Calls> calls_ = std::make_shared<Calls>();
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
  Caller caller(name);
  StorePtr inner = caller.call(timeout, make);
  return c10::make_intrusive<TimedStore>(
      std::move(inner),
      std::move(caller),
      timeout);
}

} // namespace lockstep::dist::internal
