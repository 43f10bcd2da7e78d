// SPDX-License-Identifier: BSD-3-Clause
//
// Everything that a program with LibTorch uses of Lockstep, in one header:
//   find_package(Lockstep REQUIRED COMPONENTS torch)
//   target_link_libraries(app PRIVATE lockstep::lockstep)
//   #include <lockstep/lockstep.h>
// It takes narrow headers of LibTorch; include <torch/torch.h> before it if you
// use more. The trainer behind `lockstep train` is lockstep::train, with
// headers of its own.
#pragma once

// IWYU pragma: begin_exports
#include "lockstep/base/error.h"
#include "lockstep/base/version.h"
#include "lockstep/data/batch_sampler.h"
#include "lockstep/data/distributed_sampler.h"
#include "lockstep/data/fashion_mnist.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/made_dataset.h"
#include "lockstep/data/random_dataset.h"
#include "lockstep/data/random_sampler.h"
#include "lockstep/data/registry.h"
#include "lockstep/data/transforms.h"
#include "lockstep/data/weighted_sampler.h"
#include "lockstep/device/autocast.h"
#include "lockstep/device/default_device.h"
#include "lockstep/device/device_list.h"
#include "lockstep/device/sim_control.h"
#include "lockstep/dist/comm_hook.h"
#include "lockstep/dist/distributed_data_parallel.h"
#include "lockstep/dist/objects.h"
#include "lockstep/dist/power_sgd.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/dist/sync_batch_norm.h"
#include "lockstep/dist/zero_redundancy_optimizer.h"
#include "lockstep/kernels/batch_norm.h"
#include "lockstep/kernels/install.h"
#include "lockstep/models/registry.h"
#include "lockstep/models/resnet.h"
#include "lockstep/models/small.h"
#include "lockstep/models/vgg.h"
#include "lockstep/optim/adam.h"
#include "lockstep/optim/factory.h"
#include "lockstep/optim/one_cycle_lr.h"
#include "lockstep/optim/scheduler.h"
#include "lockstep/optim/sgd.h"
#include "lockstep/optim/torch_optim_state.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/parallel/data_parallel_optimizer.h"
#include "lockstep/parallel/device_table.h"
#include "lockstep/parallel/functional.h"
#include "lockstep/parallel/replica_error.h"
#include "lockstep/parallel/traffic.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/compat.h"
#include "lockstep/tensor/load_weights.h"
#include "lockstep/tensor/make_module.h"
#include "lockstep/tensor/memory_format.h"
#include "lockstep/tensor/print.h"
#include "lockstep/tensor/python_text.h"
#include "lockstep/tensor/rng.h"
#include "lockstep/tensor/state_dict.h"
// IWYU pragma: end_exports
