// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "fuzz/exercise.h"
#include "fuzz/targets.h"
#include "fuzz/watch.h"
#include "lockstep/ckpt/core/storage_class.h"
#include "lockstep/ckpt/pickle/pickle.h"

namespace lockstep::fuzz {
namespace {

class Zeros final : public ckpt::StorageSource {
 public:
  Result<ByteSpan> load() override {
    return ByteSpan(bytes_);
  }

 private:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(64);
};

class FixedStorages final : public ckpt::PersistentIdHandler {
 public:
  Result<ckpt::Value> resolve(const ckpt::Value& id) override {
    auto storage = std::make_shared<ckpt::Storage>();
    storage->nbytes = 64;
    storage->source = std::make_shared<Zeros>();
    const ckpt::Tuple* parts = id.as_tuple();
    const ckpt::Object* type = parts == nullptr || parts->items.size() < 2
                                   ? nullptr
                                   : parts->items[1].as_object();
    if (type == nullptr) {
      storage->class_name = "torch.FloatStorage";
      return ckpt::Value(storage);
    }
    storage->dtype =
        ckpt::storage_class_dtype(type->global).value_or(storage->dtype);
    storage->class_name = type->global;
    return ckpt::Value(storage);
  }
};

} // namespace

void fuzz_pickle(ByteSpan input) {
  const Watch watch(input);
  FixedStorages storages;
  const auto pickle = ckpt::read_pickle(input, &storages, watch.limits());
  if (pickle) {
    exercise(pickle->root);
  }
}

} // namespace lockstep::fuzz
