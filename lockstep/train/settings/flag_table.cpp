// SPDX-License-Identifier: BSD-3-Clause
//
// The table itself. Adding a flag is one member of TrainConfig and one row.
#include <array>

#include "lockstep/train/settings/config.h"
#include "lockstep/train/settings/internal/schedules.h"

namespace lockstep::train {
namespace {

using C = TrainConfig;
using enum FlagGroup;

constexpr double kAny = -1e300;
/// Units: steps. All are in memory until they are written.
constexpr double kMaxProfile = 100;
constexpr double kNoMaximum = std::numeric_limits<double>::infinity();

// What the registries of lockstep/data and lockstep/models know, which need
// LibTorch; a test compares.
constexpr std::string_view kDataSets =
    "arrays|cifar10|cifar100|csv|fashion-mnist|folder|idx|mnist|segmentation";
constexpr std::string_view kModels =
    "resnet18|resnet34|resnet50|resnet101|resnet152|vgg11|vgg13|vgg16|vgg19|"
    "vgg11_bn|vgg13_bn|vgg16_bn|vgg19_bn|TheModelClass|mlp|"
    "fcn_resnet18|fcn_resnet34|fcn_resnet50|fcn_resnet101|"
    "deeplabv3_resnet18|deeplabv3_resnet34|deeplabv3_resnet50|"
    "deeplabv3_resnet101|unet|unet_small";

constexpr std::size_t schedule_names_size() {
  std::size_t size = 0;
  for (const ScheduleRow& row : kSchedules) {
    size += row.name.size() + 1;
  }
  return size;
}

// "constant|steplr|...|".
constexpr auto kScheduleNames = [] {
  std::array<char, schedule_names_size()> names{};
  std::size_t at = 0;
  for (const ScheduleRow& row : kSchedules) {
    for (const char letter : row.name) {
      names.at(at++) = letter;
    }
    names.at(at++) = '|';
  }
  return names;
}();
constexpr std::string_view kScheduleChoices(
    kScheduleNames.data(),
    kScheduleNames.size() - 1);

// One row per line group reads better than one field per line.
// clang-format off
constexpr std::array kFlags{
    Flag{"data", "--dataset", &C::data, kData, "NAME|DIR|FILE",
         "data set: fashion-mnist, mnist, or a folder or file of data; "
         "'lockstep data DIR' shows what it is read as",
         {}, 0, true, kDataSets},
    Flag{"data-dir", "--data-path", &C::data_dir, kData, "DIR",
         "folder of the data files, also as a bare argument; default: where "
         "Debian's dataset package puts them"},
    Flag{"val-split", {}, &C::val_split, kData, "SHARE",
         "share of each class for the test, where a folder has no val",
         {}, 0, true, {}, 1},
    Flag{"target", {}, &C::target, kData, "NAME,NAME",
         "columns of a table to predict; default: the last one, of images all "
         "others"},
    Flag{"batch-size", "-b", &C::batch_size, kData, "N",
         "samples per step, over all devices", {}, 1},
    Flag{"val-batch-size", "-vb,--validation-batch-size", &C::val_batch_size,
         kData, "N", "samples per step of the test; 0: as --batch-size"},
    Flag{"workers", "-j", &C::workers, kData, "N",
         "threads that prepare batches; results do not depend on it"},
    Flag{"max-train-samples", {}, &C::max_train_samples, kData, "N",
         "use the first N training samples; 0: all"},
    Flag{"max-eval-samples", {}, &C::max_eval_samples, kData, "N",
         "use the first N test samples; 0: all"},

    Flag{"augment", {}, &C::augment, kData, "HOW|FILE",
         "change training images at random: light, standard, strong or the "
         "steps of a YAML file; flip, crop-flip: flip, and padded crop",
         {}, 0, true, "none|light|standard|strong|flip|crop-flip"},
    Flag{"img-size", "--imgsz", &C::img_size, kImages, "N",
         "resize images to N x N; 0: as they are, or as the model needs them"},
    Flag{"on-bad-image", {}, &C::on_bad_image, kImages, "HOW",
         "image files that cannot be decoded: an error, or left out by name",
         "stop|skip"},
    Flag{"cache", {}, &C::cache, kImages, "WHERE",
         "keep decoded images: ram: while the program runs; disk: "
         "in ~/.cache/lockstep, for later runs", "none|ram|disk", 0, false},

    Flag{"model", "--arch", &C::model, kModel, "NAME",
         "resnet18|34|50|101|152, vgg11|13|16|19[_bn], mlp, unet, "
         "deeplabv3_resnet50, ...",
         {}, 0, true, kModels},
    Flag{"channels-last", {}, &C::channels_last, kModel, {},
         "NHWC memory layout: often faster, other last bits"},
    Flag{"initial-checkpoint", {}, &C::initial_checkpoint, kModel, "FILE",
         "start from these weights: a state_dict, checkpoint or whole model; "
         "the first and the last layer may differ"},
    Flag{"partial", {}, &C::partial, kModel, {},
         "take whatever fits from --initial-checkpoint"},

    Flag{"devices", "--device", &C::devices, kDevices, "LIST",
         "cpu, cpu*2 (two replicas), cuda, cuda:1,3; default: best present",
         {}, 0, true, "cpu|cpu*2|cuda|cuda:0"},
    Flag{"cuda", {}, &C::cuda, kDevices, {},
         "a CUDA device if there is one; --no-cuda: the CPU"},
    Flag{"strategy", {}, &C::strategy, kDevices, "HOW",
         "auto: data_parallel on several devices, distributed with several "
         "processes",
         "auto|single|data_parallel|distributed|ddp"},
    Flag{"threads", {}, &C::threads, kDevices, "N",
         "CPU threads of tensor work, shared by the replicas; 0: every core",
         {}, 0, true, {}, kMaxThreads},

    Flag{"kernels", {}, &C::kernels, kKernels, "WHOSE",
         "exact: PyTorch's bits, lockstep: faster convolutions on the CPU and "
         "batch norms, also on CUDA, channels last, other last bits",
         "exact|lockstep|torch"},
    Flag{"amp", {}, &C::amp, kKernels, "TYPE",
         "type of forward and loss; bf16, fp16: torch.autocast's, weights stay "
         "float32, with fp16 the loss is scaled; auto: bf16 where it is fast",
         "off|bf16|fp16|auto"},
    Flag{"precision", {}, &C::precision, kKernels, "HOW",
         "of float32 matrix products, as torch.set_float32_matmul_precision: "
         "high allows TF32, medium bfloat16",
         "highest|high|medium"},
    Flag{"cuda-graphs", {}, &C::cuda_graphs, kKernels, {},
         "record the step of a CUDA device once and replay it: same bits, less "
         "waiting for the host"},
    Flag{"cudnn-benchmark", {}, &C::cudnn_benchmark, kKernels, {},
         "cuDNN tries its algorithms on each new shape and takes the fastest: "
         "bits may differ from run to run"},

    Flag{"task", {}, &C::task, kTask, "NAME",
         "what is trained for; auto: what the targets of the data are for",
         "auto|classification|segmentation|regression|multilabel", 0, true, {},
         kNoMaximum, true},
    Flag{"metric", {}, &C::metric, kTask, "NAME",
         "what chooses the best epoch; auto: the task's first metric",
         {}, 0, true, "top1|loss|f1_macro|miou|mae|r2"},
    Flag{"label-smoothing", "--smoothing", &C::label_smoothing, kTask,
         "X", "of the loss, 0 to 1", {}, 0, true, {}, 1},
    Flag{"class-weights", {}, &C::class_weights, kTask, "HOW|FILE",
         "of the loss; balanced: rare classes count more, FILE: a number for "
         "each class", {}, 0, true, "balanced"},
    Flag{"sampler", {}, &C::sampler, kTask, "HOW",
         "samples of an epoch: each once, or drawn, all classes as often",
         "shuffle|balanced"},
    Flag{"mixup-alpha", "--mixup", &C::mixup_alpha, kTask, "X",
         "mix training images and classes two by two; 0: no"},
    Flag{"cutmix-alpha", "--cutmix", &C::cutmix_alpha, kTask, "X",
         "cut boxes of other training images in; 0: no"},

    Flag{"epochs", {}, &C::epochs, kOptimization, "N",
         "passes over the training data"},
    Flag{"opt", {}, &C::opt, kOptimization, "NAME",
         "optimizer", "sgd|adam|adamw", 0, true, {}, kNoMaximum, true},
    Flag{"lr", {}, &C::lr, kOptimization, "X",
         "learning rate; for onecyclelr its maximum"},
    Flag{"momentum", {}, &C::momentum, kOptimization, "X", "of SGD"},
    Flag{"weight-decay", "--wd", &C::weight_decay, kOptimization, "X",
         "L2 penalty (decoupled with adamw)"},
    Flag{"nesterov", {}, &C::nesterov, kOptimization, {},
         "Nesterov's momentum"},
    Flag{"fused", {}, &C::fused, kOptimization, {},
         "bits of PyTorch's fused=True instead of its default"},
    Flag{"on-nan", {}, &C::on_nan, kOptimization, "HOW",
         "when the loss is not a finite number", "stop|warn"},
    Flag{"seed", {}, &C::seed, kOptimization, "N",
         "as torch.manual_seed(N) before the model is built", {}, kAny},

    Flag{"accumulate", "--grad-accum-steps", &C::accumulate, kStep, "N",
         "batches whose gradients are added up for one step", {}, 1},
    Flag{"auto-batch", {}, &C::auto_batch, kStep, {},
         "make a step that does not fit into memory again in smaller parts, "
         "whose gradients add up to the same"},
    Flag{"clip-grad", "--clip-grad-norm", &C::clip_grad, kStep, "X",
         "scale the gradients down to this norm, as torch's clip_grad_norm_; "
         "0: no"},
    Flag{"clip-value", {}, &C::clip_value, kStep, "X",
         "cut each number of the gradients, as torch's clip_grad_value_; 0: no"},
    Flag{"ema", "--model-ema-decay", &C::ema, kStep, "DECAY",
         "keep the average of the weights, test it and choose the best by it; "
         "0: no", {}, 0, true, {}, 1},
    Flag{"swa-start", {}, &C::swa_start, kStep, "EPOCH",
         "keep the mean of the weights after the epochs from this one on, test "
         "it and choose the best by it; 0: no"},
    Flag{"patience", "--early-stopping-patience", &C::patience, kStep, "N",
         "end the run after so many epochs without a new best; 0: no"},

    Flag{"freeze", {}, &C::freeze, kParts, "NAME,NAME",
         "leave these parts of the model as they are: conv1,layer1"},
    Flag{"unfreeze-at", {}, &C::unfreeze_at, kParts, "EPOCH",
         "train them from this epoch on; 0: never"},
    Flag{"layer-decay", {}, &C::layer_decay, kParts, "X",
         "multiply the rate by X from layer to layer, from the last one back; "
         "1: no", {}, 0, true, {}, 1},
    Flag{"param-groups", {}, &C::param_groups, kParts, "FILE",
         "rates and weight decay by names of parameters, in YAML: "
         "- {match: \"fc.*\", lr_scale: 10}"},
    Flag{"no-decay-norms", {}, &C::no_decay_norms, kParts, {},
         "no weight decay for norms and biases"},

    Flag{"lr-scheduler", "--sched", &C::lr_scheduler, kLearningRate, "NAME",
         "learning rate over time", kScheduleChoices, 0, true, {}, kNoMaximum,
         true},
    Flag{"warmup-epochs", "--lr-warmup-epochs", &C::warmup_epochs,
         kLearningRate, "N",
         "epochs in which the rate rises from a hundredth, as torchvision's "
         "recipes have it; the schedule comes after them"},
    Flag{"warmup-steps", "--warmup-iters", &C::warmup_steps, kLearningRate,
         "N", "steps in which it rises so, over the schedule's own rates"},
    Flag{"min-lr", "--lr-min", &C::min_lr, kLearningRate, "X",
         "lowest rate of cosineannealinglr and reducelronplateau"},
    Flag{"swa-lr", {}, &C::swa_lr, kLearningRate, "X",
         "rate to which SWALR goes from --swa-start on; 0: the schedule's"},
    Flag{"lr-patience", "--patience-epochs", &C::lr_patience, kLearningRate,
         "N", "epochs that reducelronplateau waits for a better test"},
    Flag{"lr-step-size", "--decay-epochs", &C::lr_step_size, kLearningRate,
         "N", "epochs between drops of steplr", {}, 1},
    Flag{"lr-gamma", "--decay-rate", &C::lr_gamma, kLearningRate, "X",
         "factor of each drop"},
    Flag{"lr-milestones", "--decay-milestones", &C::lr_milestones,
         kLearningRate, "N,N", "epochs of the drops of multisteplr"},

    Flag{"output", "--output-dir", &C::output, kRun, "DIR",
         "run folder; one that holds a run gets a number (DIR-2)",
         {}, 0, false},
    Flag{"name", "--experiment", &C::name, kRun, "NAME",
         "run folder NAME below runs, or below --output; default: time and "
         "model", {}, 0, false},
    Flag{"resume", {}, &C::resume, kRun, "PATH|auto|best",
         "go on from a checkpoint or run folder; auto: the newest run, or a "
         "new one; best: from its best checkpoint, in a new folder",
         {}, 0, false},
    Flag{"resume-exact", {}, &C::resume_exact, kRun, {},
         "refuse to go on where the bits could differ from a run without "
         "interruption", {}, 0, false},
    Flag{"checkpoint-interval", {}, &C::checkpoint_interval, kRun, "N",
         "steps between checkpoints; 0: one after each epoch"},
    Flag{"keep", "--checkpoint-hist", &C::keep, kRun, "N",
         "newest checkpoints that stay, beside the best one", {}, 1},
    Flag{"test-only", "--eval", &C::test_only, kRun, {},
         "test the weights given by --resume or --initial-checkpoint",
         {}, 0, false},

    Flag{"log-interval", "--print-freq", &C::log_interval, kOutput, "N",
         "steps between rows of steps.csv and lines of the log", {}, 1},
    Flag{"profile", {}, &C::profile, kOutput, "N",
         "write trace.json: what replicas and ranks do in N steps, for "
         "ui.perfetto.dev; 0: no", {}, 0, false, {}, kMaxProfile},
    Flag{"progress", {}, &C::progress, kOutput, "HOW",
         "bar on a terminal, lines elsewhere", "auto|bar|plain|off", 0, false},
    Flag{"quiet", "-q", &C::quiet, kOutput, {}, "errors only", {}, 0, false},
};
// clang-format on

} // namespace

std::span<const Flag> flag_table() {
  return kFlags;
}

} // namespace lockstep::train
