// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/tensor/modules.h"

namespace lockstep {
namespace {

using test::error_of;

// Two tensors of one storage, deep in a tree, saved from a GPU.
ckpt::Value saved_from(const std::string& location) {
  ValueBuilder builder;
  const at::Tensor base = torch::ones({4});
  const ckpt::Value whole = builder.tensor(base);
  whole.as_tensor()->storage->location = location;
  return ckpt::Value::dict(
      {{"list",
        ckpt::Value::list(
            {whole, ckpt::Value::tuple({builder.tensor(base[1])})})}});
}

const ckpt::Tensor& tensor_of(const ckpt::Value& value) {
  return *value.find("list")->as_list()->items.at(0).as_tensor();
}

std::string mapped(const MapLocation& rule) {
  const ckpt::Value value = saved_from("cuda:1");
  map_locations(value, rule);
  return tensor_of(value).storage->location;
}

TEST(MapLocation, TakesTextDeviceMapAndCallable) {
  EXPECT_EQ(mapped("cpu"), "cpu");
  EXPECT_EQ(mapped(std::string("cpu")), "cpu");
  EXPECT_EQ(mapped(c10::Device(c10::kCPU)), "cpu");
  EXPECT_EQ(mapped(MapLocation::Map{{"cuda:1", "cpu"}}), "cpu");
  std::string seen;
  EXPECT_EQ(
      mapped([&](const std::string& location) {
        seen = location;
        return c10::Device(c10::kCPU);
      }),
      "cpu");
  EXPECT_EQ(seen, "cuda:1");
}

TEST(MapLocation, MovesTensorsWithTheirSharing) {
  const ckpt::Value value = saved_from("cpu");
  map_locations(value, "meta");
  const at::Tensor tensor = to_tensor(tensor_of(value));
  EXPECT_TRUE(tensor.is_meta());
  EXPECT_EQ(tensor.sizes(), (std::vector<std::int64_t>{4}));
}

TEST(MapLocation, AsStoredAsksForTheDevice) {
  if (torch::cuda::device_count() > 1) {
    return; // then cuda:1 is here
  }
  for (const MapLocation& rule :
       {MapLocation(),
        MapLocation(MapLocation::Map{{"cuda:7", "cpu"}}),
        MapLocation([](const std::string&) -> std::optional<c10::Device> {
          return std::nullopt;
        })}) {
    EXPECT_EQ(error_of([&] { mapped(rule); }).code, ErrorCode::kUnavailable);
  }
}

TEST(MapLocation, SaysPyTorchsWordsAboutCuda) {
  EXPECT_NO_THROW(check_cuda_location(0, true, 1));
  EXPECT_NO_THROW(check_cuda_location(-1, true, 1));
  EXPECT_EQ(
      error_of([] { check_cuda_location(0, false, 0); }).message,
      "Attempting to deserialize object on a CUDA device but "
      "torch.cuda.is_available() is False. If you are running on a CPU-only "
      "machine, please use torch.load with map_location=torch.device('cpu') to "
      "map your storages to the CPU.");
  EXPECT_EQ(
      error_of([] { check_cuda_location(3, true, 2); }).message,
      "Attempting to deserialize object on CUDA device 3 but "
      "torch.cuda.device_count() is 2. Please use torch.load with map_location "
      "to map your storages to an existing device.");
}

TEST(MapLocation, RefusesAnUnknownTag) {
  const ckpt::Value value = saved_from("warp:9");
  const Error error = error_of([&] { map_locations(value, {}); });
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_EQ(
      error.message,
      "don't know how to restore data location of "
      "torch.storage.UntypedStorage (tagged with warp:9)");
  EXPECT_EQ(tensor_of(value).storage->location, "warp:9");
}

} // namespace
} // namespace lockstep
