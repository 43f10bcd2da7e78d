// SPDX-License-Identifier: BSD-3-Clause
//
// What the program lockstep-train can do: it runs these commands, and
// `lockstep` lists them and hands them over.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace lockstep::train {

/// What `lockstep train --recipe` takes.
inline constexpr std::array<std::string_view, 3> kRecipes{
    "fashion-mnist",
    "finetune",
    "from-scratch"};

/// A flag of a command that has a few of its own.
struct CommandFlag {
  std::string_view name = {};
  /// What its value is called; empty for a switch.
  std::string_view value = {};
  std::string_view help = {};
};

inline constexpr std::array kSummaryFlags{
    CommandFlag{
        "--img-size",
        "N",
        "height and width of the images; default: what the model is made for"},
    CommandFlag{"--batch-size", "N", "images at a time [default: 1]"},
    CommandFlag{"--num-classes", "N", "classes [default: 1000]"},
    CommandFlag{"--in-channels", "N", "colours [default: 3]"},
    CommandFlag{"--json", {}, "print one JSON object"},
    CommandFlag{"--help", {}, "print this help"},
};

inline constexpr std::array kBenchFlags{
    CommandFlag{
        "--img-size",
        "N",
        "height and width of the images; default: what the model is made for"},
    CommandFlag{"--batch-size", "N", "images per step [default: 64]"},
    CommandFlag{"--num-classes", "N", "classes [default: 1000]"},
    CommandFlag{"--in-channels", "N", "colours [default: 3]"},
    CommandFlag{
        "--devices",
        "DEVICE",
        "one device: cpu, cuda:0, sim*1 [default: cpu]"},
    CommandFlag{
        "--threads",
        "N",
        "threads of the kernels [default: every core]"},
    CommandFlag{
        "--kernels",
        "WHOSE",
        "lockstep, exact or torch, as 'lockstep train' has them [default: "
        "lockstep]"},
    CommandFlag{
        "--compare",
        "WHOSE",
        "kernels to measure beside them, step by step in turn"},
    CommandFlag{
        "--channels-last",
        {},
        "NHWC memory layout also for --kernels exact and torch"},
    CommandFlag{
        "--amp",
        "TYPE",
        "off, bf16 or auto, as 'lockstep train' has them [default: off]"},
    CommandFlag{
        "--steps",
        "N",
        "steps to time, and as many whose layers are [default: 10]"},
    CommandFlag{
        "--tune",
        {},
        "time every way to compute each convolution instead"},
    CommandFlag{"--json", {}, "print one JSON object"},
    CommandFlag{"--help", {}, "print this help"},
};

inline constexpr std::array kPredictFlags{
    CommandFlag{
        "--top",
        "N",
        "columns for the N best classes of each image [default: 1]"},
    CommandFlag{"--format", "FORMAT", "csv, jsonl or npz [default: csv]"},
    CommandFlag{
        "--output",
        "PATH",
        "file to write, instead of standard output; of masks their folder"},
    CommandFlag{"--batch-size", "N", "images at a time [default: 64]"},
    CommandFlag{"--workers", "N", "threads that read images [default: 1]"},
    CommandFlag{
        "--devices",
        "LIST",
        "cpu, cpu*2, cuda, cuda:1,3; default: best present"},
    CommandFlag{
        "--on-bad-image",
        "HOW",
        "stop, or skip: go on without it [default: stop]"},
    CommandFlag{"--help", {}, "print this help"},
};

inline constexpr std::array kEvalFlags{
    CommandFlag{
        "--data",
        "NAME|DIR",
        "other data than the run's: a folder or a data set"},
    CommandFlag{
        "--part",
        "PART",
        "test, train or all of the data [default: test]"},
    CommandFlag{
        "--output",
        "DIR",
        "write confusion.svg, metrics.json, worst.csv and worst.png there"},
    CommandFlag{"--worst", "N", "samples with the highest loss [default: 25]"},
    CommandFlag{"--batch-size", "N", "samples at a time; default: the run's"},
    CommandFlag{"--workers", "N", "threads that read samples [default: 1]"},
    CommandFlag{
        "--devices",
        "LIST",
        "cpu, cpu*2, cuda, cuda:1,3; default: best present"},
    CommandFlag{"--json", {}, "print one JSON object"},
    CommandFlag{"--help", {}, "print this help"},
};

inline constexpr std::array kDataFlags{
    CommandFlag{
        "--data",
        "NAME",
        "what it is read as, whatever it looks like: csv, folder, ..."},
    CommandFlag{
        "--target",
        "NAME,NAME",
        "columns of a table to predict; default: the last one, of images all "
        "others"},
    CommandFlag{
        "--val-split",
        "SHARE",
        "share for the test, where there is no part for it [default: 0.2]"},
    CommandFlag{
        "--sheet",
        "FILE.png",
        "write ten samples as a picture, masks beside their images"},
    CommandFlag{"--json", {}, "print one JSON object"},
    CommandFlag{"--help", {}, "print this help"},
};

/// One command.
struct TrainCommand {
  std::string_view name = {};
  std::string_view help = {};
  /// What follows the name: "[DIR]".
  std::string_view arguments = {};
  std::array<std::string_view, 2> examples = {};
  /// `train` has those of `flag_table` instead.
  std::span<const CommandFlag> flags = {};
};

inline constexpr std::array kTrainCommands{
    TrainCommand{
        "train",
        "train a model on one or several devices",
        "[DIR]",
        {"lockstep train --model resnet18 --epochs 5 --lr 0.05",
         "lockstep train --devices 'cpu*2' --output runs/two --epochs 1"}},
    TrainCommand{
        "summary",
        "layers, shapes, parameters and costs of a model",
        "MODEL",
        {"lockstep summary resnet18",
         "lockstep summary vgg19 --img-size 32 --num-classes 10 --json"},
        kSummaryFlags},
    TrainCommand{
        "bench",
        "how fast a model trains here, layer by layer",
        "MODEL",
        {"lockstep bench resnet18 --img-size 28 --in-channels 1",
         "lockstep bench vgg11 --batch-size 32 --compare torch --json"},
        kBenchFlags},
    TrainCommand{
        "predict",
        "what a trained model says of images",
        "RUN|FILE IMAGES...",
        {"lockstep predict runs/animals photos",
         "lockstep predict runs/animals a.jpg b.jpg --top 3 --format jsonl"},
        kPredictFlags},
    TrainCommand{
        "eval",
        "how good a trained model is: metrics, classes, worst samples",
        "RUN|FILE",
        {"lockstep eval runs/animals",
         "lockstep eval runs/animals --data more/animals --output report"},
        kEvalFlags},
    TrainCommand{
        "data",
        "what a folder or file of data is read as, and what is in it",
        "DIR|FILE",
        {"lockstep data /usr/share/datasets/fashion-mnist",
         "lockstep data animals --sheet animals.png"},
        kDataFlags},
};

} // namespace lockstep::train
