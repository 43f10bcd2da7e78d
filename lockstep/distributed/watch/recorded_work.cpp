// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/watch/recorded_work.h"

#include <exception>
#include <utility>

namespace lockstep::dist::internal {
namespace {

using c10::ivalue::Future;

// In the backend's thread, or in the caller's if it was over at once.
void take_end(Future& inner, Flight& flight, FlightRecorder& recorder) {
  if (!inner.hasError()) {
    if (recorder.end(flight, false)) {
      flight.future->markCompleted(inner.value());
    }
    return;
  }
  const auto error = recorder.failure(flight, inner.exception_ptr());
  if (recorder.end(flight, true)) {
    flight.future->setError(error);
  }
  if (ends_group(inner.exception_ptr())) {
    flight.carrier->abort();
  }
}

/// For work that has no future (Gloo's reduce_scatter): its end is seen by
/// who waits for it.
class PlainWork final : public c10d::Work {
 public:
  PlainWork(
      c10::intrusive_ptr<c10d::Work> inner,
      std::shared_ptr<Flight> flight,
      std::shared_ptr<FlightRecorder> recorder)
      : c10d::Work(recorder->rank(), inner->retrieveOpType()),
        inner_(std::move(inner)),
        flight_(std::move(flight)),
        recorder_(std::move(recorder)) {}
  ~PlainWork() override {
    recorder_->end(*flight_, false);
  }
  PlainWork(const PlainWork&) = delete;
  PlainWork& operator=(const PlainWork&) = delete;

  bool isCompleted() override {
    return inner_->isCompleted();
  }
  bool isSuccess() const override {
    return inner_->isSuccess();
  }
  std::exception_ptr exception() const override {
    return inner_->exception();
  }
  std::vector<at::Tensor> result() override {
    return inner_->result();
  }
  void synchronize() override {
    inner_->synchronize();
  }
  bool wait(std::chrono::milliseconds timeout) override {
    try {
      inner_->wait(timeout);
    } catch (const std::exception& error) {
      const auto ours = recorder_->failure(*flight_, std::current_exception());
      recorder_->end(*flight_, true);
      if (ends_group(error)) {
        flight_->carrier->abort();
      }
      std::rethrow_exception(ours);
    }
    recorder_->end(*flight_, false);
    return true;
  }
  void abort() override {
    inner_->abort();
  }
  std::uint64_t getSequencenumber() const override {
    return inner_->getSequencenumber();
  }

 private:
  c10::intrusive_ptr<c10d::Work> inner_;
  std::shared_ptr<Flight> flight_;
  std::shared_ptr<FlightRecorder> recorder_;
};

/// Null where the backend has none.
c10::intrusive_ptr<Future> future_of(c10d::Work& work) {
  try {
    return work.getFuture();
  } catch (const c10::Error&) {
    return nullptr;
  }
}

class RecordedWork final : public c10d::Work {
 public:
  RecordedWork(
      c10::intrusive_ptr<c10d::Work> inner,
      c10::intrusive_ptr<Future> future,
      int rank)
      : c10d::Work(rank, inner->retrieveOpType()),
        inner_(std::move(inner)),
        future_(std::move(future)) {}

  bool isCompleted() override {
    return future_->completed();
  }
  bool isSuccess() const override {
    return future_->hasValue();
  }
  std::exception_ptr exception() const override {
    return future_->exception_ptr();
  }
  std::vector<at::Tensor> result() override {
    return inner_->result();
  }
  void synchronize() override {
    inner_->synchronize();
  }
  bool wait(std::chrono::milliseconds timeout) override {
    if (timeout != kNoTimeout && !future_->completed()) {
      inner_->wait(timeout); // throws if it takes longer
    }
    future_->waitAndThrow();
    // Over for Gloo; NCCL lets streams wait here, and the caller at a barrier.
    inner_->wait(timeout);
    return true;
  }
  void abort() override {
    inner_->abort();
  }
  c10::intrusive_ptr<Future> getFuture() override {
    return future_;
  }
  std::uint64_t getSequencenumber() const override {
    return inner_->getSequencenumber();
  }

 private:
  c10::intrusive_ptr<c10d::Work> inner_;
  c10::intrusive_ptr<Future> future_;
};

} // namespace

c10::intrusive_ptr<c10d::Work> recorded_work(
    c10::intrusive_ptr<c10d::Work> inner,
    std::shared_ptr<Flight> flight,
    const std::shared_ptr<FlightRecorder>& recorder) {
  const auto inner_future = future_of(*inner);
  if (inner_future == nullptr) {
    return c10::make_intrusive<PlainWork>(
        std::move(inner),
        std::move(flight),
        recorder);
  }
  const auto future = inner_future->createInstance(inner_future->elementType());
  recorder->set_future(*flight, future);
  auto work = c10::make_intrusive<RecordedWork>(
      std::move(inner),
      future,
      recorder->rank());
  inner_future->addCallback(
      [flight = std::move(flight), recorder](Future& ended) {
        take_end(ended, *flight, *recorder);
      });
  return work;
}

} // namespace lockstep::dist::internal
