// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/shm/shm_backend.h"

#include <exception>
#include <stdexcept>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/zeros.h>

#include "lockstep/distributed/shm/byte_collectives.h"
#include "lockstep/distributed/shm/elements.h"
#include "lockstep/distributed/shm/monitored_barrier.h"
#include "lockstep/distributed/shm/reduction.h"
#include "lockstep/distributed/shm/same_host.h"

namespace lockstep::dist::internal {
namespace {

using at::Tensor;
using c10d::Work;
using shm::Bytes;
using shm::ConstBytes;
using shm::Elements;
using WorkPtr = c10::intrusive_ptr<Work>;

/// c10d takes lists for several devices of a process; there is one here.
template <class T>
T& only(std::vector<T>& list) {
  TORCH_CHECK(list.size() == 1, "expected one tensor, got ", list.size());
  return list.front();
}

/// A tensor for each rank, each with as many elements as the rank's own.
void check_list(const std::vector<Tensor>& list, const Tensor& own, int size) {
  TORCH_CHECK(
      list.size() == static_cast<std::size_t>(size),
      "expected a tensor for each of ",
      size,
      " ranks, got ",
      list.size());
  for (const Tensor& tensor : list) {
    TORCH_CHECK(
        tensor.nbytes() == own.nbytes() && tensor.dtype() == own.dtype(),
        "the tensors of the ranks have different sizes or dtypes");
  }
}

/// A call of all ranks.
enum class Collective : std::uint8_t {
  kBroadcast,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBarrier,
  kGather,
  kScatter
};

class ShmBackend final : public c10d::Backend {
 public:
  ShmBackend(
      shm::Shared shared,
      int rank,
      int size,
      std::chrono::milliseconds timeout)
      : Backend(rank, size),
        timeout_(timeout),
        communicator_(std::move(shared.communicator)),
        heaps_(std::move(shared.heaps)),
        place_{.communicator = *communicator_, .rank = rank, .size = size} {}

  const std::string getBackendName() const override {
    return "shm";
  }

  void abort() override {
    communicator_->abort();
  }

  WorkPtr broadcast(
      std::vector<Tensor>& tensors,
      const c10d::BroadcastOptions& options) override {
    begin(Collective::kBroadcast, only(tensors), options.rootRank);
    const auto source = static_cast<int>(options.rootRank);
    TORCH_CHECK(source >= 0 && source < getSize(), "there is no rank ", source);
    return work(tensors, [&] {
      Elements elements(only(tensors));
      shm::broadcast(place_, elements.bytes(), source);
      elements.write_back();
    });
  }

  WorkPtr allreduce(
      std::vector<Tensor>& tensors,
      const c10d::AllreduceOptions& options) override {
    Tensor& tensor = only(tensors);
    begin(Collective::kAllReduce, tensor, options.reduceOp.op_);
    if (tensor.is_sparse()) {
      TORCH_CHECK(
          options.reduceOp == c10d::ReduceOp::SUM,
          "sparse tensors can be added only");
      return work(tensors, [&] { tensor.copy_(sparse_sum(tensor)); });
    }
    const auto join = shm::join_of(options.reduceOp, tensor.scalar_type());
    return work(tensors, [&] {
      if (getSize() > 1) {
        Elements elements(tensor);
        const Bytes bytes = elements.bytes();
        // Asking where the data lies takes a meeting, as a piece does.
        if (bytes.size() < shm::Communicator::kBoxBytes ||
            !shm::all_reduce_in_place(place_, heaps_, bytes, join)) {
          shm::all_reduce(place_, bytes, join);
        }
        elements.write_back();
      }
    });
  }

  WorkPtr allgather(
      std::vector<std::vector<Tensor>>& outputs,
      std::vector<Tensor>& inputs,
      const c10d::AllgatherOptions& /*options*/) override {
    const Tensor& own = only(inputs);
    const std::vector<Tensor>& all = only(outputs);
    begin(Collective::kAllGather, own, 0);
    check_list(all, own, getSize());
    return work(all, [&] { gather_all(own, all); });
  }

  WorkPtr reduce_scatter(
      std::vector<Tensor>& outputs,
      std::vector<std::vector<Tensor>>& inputs,
      const c10d::ReduceScatterOptions& options) override {
    const Tensor& output = only(outputs);
    const std::vector<Tensor>& all = only(inputs);
    begin(Collective::kReduceScatter, output, options.reduceOp.op_);
    check_list(all, output, getSize());
    const auto join = shm::join_of(options.reduceOp, output.scalar_type());
    return work(outputs, [&] { scatter_joined(all, output, join); });
  }

  WorkPtr barrier(const c10d::BarrierOptions& /*options*/) override {
    begin(Collective::kBarrier, Tensor(), 0);
    return work({}, [&] { communicator_->meet(); });
  }

  // Throw at once: nothing is noted of these, and c10d's work with an error in
  // it does not throw where it is waited for.
  WorkPtr send(std::vector<Tensor>& tensors, int to, int tag) override {
    send_one(only(tensors), to, tag);
    return work(tensors, [] {});
  }

  WorkPtr recv(std::vector<Tensor>& tensors, int from, int tag) override {
    receive_one(only(tensors), from, tag);
    return work(tensors, [] {});
  }

  WorkPtr gather(
      std::vector<std::vector<Tensor>>& outputs,
      std::vector<Tensor>& inputs,
      const c10d::GatherOptions& options) override {
    const auto root = static_cast<int>(options.rootRank);
    const Tensor& own = only(inputs);
    begin(Collective::kGather, own, root);
    if (root != getRank()) {
      return work({}, [&] { send_one(own, root, kListTag); });
    }
    const std::vector<Tensor>& all = only(outputs);
    check_list(all, own, getSize());
    return work(all, [&] {
      all[static_cast<std::size_t>(root)].copy_(own);
      for_others([&](int rank) {
        receive_one(all[static_cast<std::size_t>(rank)], rank, kListTag);
      });
    });
  }

  WorkPtr scatter(
      std::vector<Tensor>& outputs,
      std::vector<std::vector<Tensor>>& inputs,
      const c10d::ScatterOptions& options) override {
    const auto root = static_cast<int>(options.rootRank);
    const Tensor& own = only(outputs);
    begin(Collective::kScatter, own, root);
    if (root != getRank()) {
      return work(outputs, [&] { receive_one(own, root, kListTag); });
    }
    const std::vector<Tensor>& all = only(inputs);
    check_list(all, own, getSize());
    return work(outputs, [&] {
      own.copy_(all[static_cast<std::size_t>(root)]);
      for_others([&](int rank) {
        send_one(all[static_cast<std::size_t>(rank)], rank, kListTag);
      });
    });
  }

  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all)
      override {
    try {
      shm::monitored_barrier(place_, options.timeout, wait_all);
    } catch (const std::runtime_error& error) {
      TORCH_CHECK(false, error.what());
    }
  }

  bool supportsTensorAlloc(c10::DeviceIndex device) override {
    return device < 0; // the CPU
  }

  // The Reducer's buckets lie there. After a failure a late rank may still
  // write to what it knew, so nothing more is handed out.
  // LibTorch asks for complex numbers where it goes on with pairs of real ones.
  Tensor allocateTensor(long size, at::TensorOptions options) override {
    const auto dtype = c10::typeMetaToScalarType(options.dtype());
    if (c10::isComplexType(dtype)) {
      return allocateTensor(
          2 * size,
          options.dtype(c10::toRealValueType(dtype)));
    }
    const auto count = static_cast<std::size_t>(size);
    const std::size_t itemsize = options.dtype().itemsize();
    const bool is_given = !communicator_->is_broken() &&
                          count <= shm::Heap::bytes_for_all() / itemsize;
    const auto block =
        is_given ? heaps_.own->allocate(count * itemsize) : std::nullopt;
    if (!block) {
      return at::empty({size}, options);
    }
    return at::from_blob(
        block->data(),
        {size},
        [heap = heaps_.own, block = *block](void*) { heap->free(block); },
        options);
  }

 private:
  /// Of messages that are no user's.
  static constexpr int kListTag = -1;

  /// Counts the calls, also those with wrong arguments: a rank whose call went
  /// wrong by itself is found by the others in the next one.
  void begin(Collective call, const Tensor& tensor, std::int64_t how) {
    std::size_t number = c10::get_hash(++calls_, static_cast<int>(call), how);
    if (tensor.defined()) {
      const auto bytes = tensor.is_sparse()
                             ? tensor.sparse_dim()
                             : static_cast<std::int64_t>(tensor.nbytes());
      number = c10::get_hash(
          number,
          bytes,
          static_cast<int>(tensor.scalar_type()),
          static_cast<int>(tensor.layout()));
    }
    communicator_->begin(number);
  }

  /// Work that is over: `run` fills the tensors. What goes wrong there breaks
  /// the communicator, so that the others do not go on with what this rank has
  /// not written, and fails the work. The Reducer reads a list of tensors from
  /// its future.
  template <class Run>
  WorkPtr work(const std::vector<Tensor>& tensors, const Run& run) {
    const at::NoGradGuard no_grad;
    auto future = c10::make_intrusive<c10::ivalue::Future>(
        c10::ListType::create(c10::TensorType::get()));
    try {
      run();
      future->markCompleted(c10::IValue(tensors));
    } catch (const std::exception&) {
      communicator_->abort();
      future->setError(std::current_exception());
    }
    return Work::create_from_future(future);
  }

  template <class Use>
  void for_others(const Use& use) const {
    for (int rank = 0; rank < getSize(); ++rank) {
      if (rank != getRank()) {
        use(rank);
      }
    }
  }

  [[nodiscard]] shm::Partner partner(int rank, int tag) const {
    TORCH_CHECK(
        rank >= 0 && rank < getSize() && rank != getRank(),
        "there is no other rank ",
        rank);
    return {.rank = rank, .tag = tag, .timeout = timeout_};
  }

  void send_one(const Tensor& tensor, int to, int tag) {
    communicator_->send(partner(to, tag), Elements(tensor).bytes());
  }

  void receive_one(const Tensor& tensor, int from, int tag) {
    const at::NoGradGuard no_grad;
    Elements elements(tensor);
    communicator_->receive(partner(from, tag), elements.bytes());
    elements.write_back();
  }

  void gather_all(const Tensor& input, const std::vector<Tensor>& outputs) {
    const Elements own(input);
    auto all = shm::elements_of(outputs);
    shm::all_gather(place_, own.bytes(), shm::bytes_of<Bytes>(all));
    for (Elements& elements : all) {
      elements.write_back();
    }
  }

  void scatter_joined(
      const std::vector<Tensor>& inputs,
      const Tensor& output,
      const shm::Join& join) {
    if (getSize() == 1) {
      output.copy_(inputs.front().reshape(output.sizes()));
      return;
    }
    Elements own(output);
    shm::reduce_scatter(
        place_,
        shm::bytes_of<ConstBytes>(shm::elements_of(inputs)),
        own.bytes(),
        join);
    own.write_back();
  }

  /// All ranks' entries, added up where they are at the same place.
  Tensor sparse_sum(const Tensor& tensor) {
    const Tensor own = tensor.coalesce();
    const auto counts = gather_alike(at::scalar_tensor(own._nnz(), at::kLong));
    std::int64_t longest = 0;
    for (const Tensor& count : counts) {
      longest = std::max(longest, count.item<std::int64_t>());
    }
    // Ranks gather tensors of one shape: the rest is left out again.
    const auto gather_rows = [&](const Tensor& rows) {
      std::vector<std::int64_t> shape = rows.sizes().vec();
      shape.front() = longest;
      Tensor padded = at::zeros(shape, rows.options());
      padded.narrow(0, 0, rows.size(0)).copy_(rows);
      auto all = gather_alike(padded);
      for (std::size_t rank = 0; rank < all.size(); ++rank) {
        all[rank] = all[rank].narrow(0, 0, counts[rank].item<std::int64_t>());
      }
      return at::cat(all);
    };
    const Tensor indices = gather_rows(own.indices().t()).t();
    const Tensor values = gather_rows(own.values());
    return at::sparse_coo_tensor(indices, values, tensor.sizes()).coalesce();
  }

  std::vector<Tensor> gather_alike(const Tensor& tensor) {
    std::vector<Tensor> all(static_cast<std::size_t>(getSize()));
    for (Tensor& of_rank : all) {
      of_rank = at::empty_like(tensor);
    }
    gather_all(tensor, all);
    return all;
  }

  std::chrono::milliseconds timeout_;
  std::unique_ptr<shm::Communicator> communicator_;
  shm::Heaps heaps_;
  shm::Place place_;
  std::uint64_t calls_ = 0;
};

} // namespace

Result<c10::intrusive_ptr<c10d::Backend>> shm_backend(
    const ExchangeTexts& exchange,
    int rank,
    int size,
    std::chrono::milliseconds timeout) {
  auto shared = shm::share_memory(
      exchange,
      {.rank = rank, .size = size, .timeout = timeout});
  if (!shared) {
    return shared.error();
  }
  return c10::intrusive_ptr<c10d::Backend>(
      c10::make_intrusive<ShmBackend>(*std::move(shared), rank, size, timeout));
}

} // namespace lockstep::dist::internal
