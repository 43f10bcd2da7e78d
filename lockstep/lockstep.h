// SPDX-License-Identifier: BSD-3-Clause
//
// Everything that a program with LibTorch uses of Lockstep, in one header:
//   find_package(Lockstep REQUIRED COMPONENTS torch)
//   target_link_libraries(app PRIVATE lockstep::lockstep)
//   #include <lockstep/lockstep.h>
// It takes narrow headers of LibTorch; include <torch/torch.h> before it if you
// use more. The trainer behind `lockstep train` is in lockstep::train.
#pragma once

// IWYU pragma: begin_exports
#include "lockstep/base/error.h"
#include "lockstep/base/version.h"
#include "lockstep/data/augment.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/images.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/made_dataset.h"
#include "lockstep/data/open_dataset.h"
#include "lockstep/data/samplers.h"
#include "lockstep/device/autocast.h"
#include "lockstep/device/device_graph.h"
#include "lockstep/device/device_list.h"
#include "lockstep/device/sim_control.h"
#include "lockstep/distributed/comm_hook.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/distributed/process_group.h"
#include "lockstep/distributed/zero_redundancy_optimizer.h"
#include "lockstep/kernels/install.h"
#include "lockstep/launch/error_file.h"
#include "lockstep/metrics/metric.h"
#include "lockstep/models/classification.h"
#include "lockstep/models/model.h"
#include "lockstep/models/segmentation.h"
#include "lockstep/models/unet.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/optim/scheduler.h"
#include "lockstep/optim/schedules.h"
#include "lockstep/optim/torch_optimizer.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/parallel/device_table.h"
#include "lockstep/parallel/functional.h"
#include "lockstep/parallel/replica_group.h"
#include "lockstep/program/program.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/make_module.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/norm_relu.h"
#include "lockstep/tensor/rng.h"
#include "lockstep/tensor/state_dict.h"
#include "lockstep/train/checkpoints.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/sample_order.h"
#include "lockstep/train/state_parts.h"
#include "lockstep/train/trainer.h"
// IWYU pragma: end_exports
