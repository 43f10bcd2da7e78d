// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/run_identity.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include "lockstep/base/strings.h"
#include "lockstep/base/version.h"
#include "lockstep/device/device_list.h"
#include "lockstep/device/internal/gpu_names.h"
#include "lockstep/tensor/internal/compat.h"
#include "lockstep/tensor/internal/cpu_features.h"
#include "lockstep/tensor/internal/kernel_choice.h"
#include "lockstep/train/settings/internal/schedules.h"
#include "lockstep/train/step/precision.h"

namespace lockstep::train {
namespace {

constexpr int kFormat = 1;

std::string environment(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets variables by now
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// "AVX512, AuthenticAMD 25".
std::string cpu_text() {
  return format(
      "{}, {} {}",
      at::get_cpu_capability(),
      cpu_model().vendor,
      cpu_model().family);
}

/// The second is what the first was called before oneDNN 3.
std::string onednn_isa() {
  const std::string isa = environment("ONEDNN_MAX_CPU_ISA");
  return isa.empty() ? environment("DNNL_MAX_CPU_ISA") : isa;
}

/// For schedules that are planned for the length of a run.
std::string planned_epochs(const TrainConfig& config) {
  return schedule_row(config.lr_scheduler).is_planned
             ? std::to_string(config.epochs)
             : "any";
}

/// With the rules of their arithmetic: they decide about bits.
std::string kernels_text(const TrainConfig& config) {
  const OwnKernels* const own = own_kernels();
  return config.kernels == "lockstep" && own != nullptr
             ? format("lockstep, {}", own->rules)
             : config.kernels;
}

/// "NVIDIA H100 80GB HBM3, cuDNN 91900, TF32 in convolutions"; empty on the
/// CPU.
std::string gpu_text(std::span<const c10::Device> devices) {
  const std::string names = gpu_names(devices);
  if (names.empty()) {
    return {};
  }
  const at::Context& context = at::globalContext();
  std::string text =
      format("{}, cuDNN {}", names, at::detail::getCUDAHooks().versionCuDNN());
  for (const auto& [is_set, what] :
       {std::pair(context.allowTF32CuDNN(), ", TF32 in convolutions"),
        std::pair(context.deterministicCuDNN(), ", deterministic"),
        std::pair(context.benchmarkCuDNN(), ", by benchmark")}) {
    text += is_set ? what : "";
  }
  return text;
}

constexpr std::string_view kTestDigest = "test_digest";
constexpr std::array<std::string_view, 2> kDigests{"train_digest", kTestDigest};

// Empty for what is not known.
std::string digest_text(std::uint64_t digest) {
  return digest == 0 ? "" : format("{:016x}", digest);
}

// An older checkpoint has no digests and no number of ranks, a program's own
// data may have no digest.
bool is_unknown(
    std::string_view field,
    const std::string& saved,
    const std::string& now) {
  const bool is_digest = std::ranges::find(kDigests, field) != kDigests.end();
  return (is_digest && (saved.empty() || now.empty())) ||
         (field == "ranks" && saved.empty()) ||
         (field == "accumulate" && saved.empty() && now == "1");
}

// Those of `texts` that `others` lack, with semicolons between.
std::string without(
    std::vector<std::string> texts,
    const std::vector<std::string>& others) {
  std::erase_if(texts, [&](const std::string& text) {
    return std::ranges::find(others, text) != others.end();
  });
  return join(texts, "; ");
}

// A list of texts; one text, as older checkpoints have it, is a list of one.
std::vector<std::string> texts_in(const ckpt::Value* saved) {
  std::vector<std::string> texts;
  if (saved == nullptr) {
    return texts;
  }
  if (const std::vector<ckpt::Value>* items = saved->elements()) {
    for (const ckpt::Value& item : *items) {
      texts.emplace_back(item.text());
    }
  } else if (!saved->text().empty()) {
    texts.emplace_back(saved->text());
  }
  return texts;
}

// Older checkpoints do not say it.
constexpr std::string_view kEachOnce = "shuffle";

std::string yes_or_no(bool value) {
  return value ? "yes" : "no";
}

} // namespace

bool has_channels_last(const TrainConfig& config) {
  return config.channels_last || want_channels_last(config.kernels);
}

RunIdentity::RunIdentity(
    const TrainConfig& config,
    std::span<const c10::Device> devices,
    const std::string& strategy,
    const RunFacts& facts)
    : facts_(facts),
      numerics_{
          {{"lockstep", std::string(kVersion)},
           {"torch", torch_library_version()},
           {"cpu", cpu_text()},
           {"onednn_isa", onednn_isa()},
           {"threads", std::to_string(at::get_num_threads())},
           {"devices", lockstep::to_string(devices)},
           {"gpu", gpu_text(devices)},
           {"strategy", strategy},
           {"ranks", std::to_string(facts.ranks)},
           {"kernels", kernels_text(config)},
           {"amp", precision_text(config, devices.front().is_cuda())},
           {"channels_last", yes_or_no(has_channels_last(config))},
           {"augment", config.augment},
           {"mixup_alpha", shortest(config.mixup_alpha)},
           {"cutmix_alpha", shortest(config.cutmix_alpha)},
           {"task", config.task},
           {"opt", config.opt},
           {"planned_epochs", planned_epochs(config)},
           {"label_smoothing", shortest(config.label_smoothing)},
           {"class_weights", config.class_weights},
           {"batch_size", std::to_string(config.batch_size)},
           {"accumulate", std::to_string(config.accumulate)},
           {"val_batch_size", std::to_string(config.val_batch_size)},
           {"max_eval_samples", std::to_string(config.max_eval_samples)},
           {std::string(kTestDigest), digest_text(facts.test_digest)},
           {"deterministic",
            yes_or_no(at::globalContext().deterministicAlgorithms())}},
          {{"hooks", facts.hooks}}},
      order_{
          {{"data", config.data},
           {"val_split", shortest(config.val_split)},
           {"target", config.target},
           {"train_samples", std::to_string(facts.train_samples)},
           {"train_digest", digest_text(facts.train_digest)},
           {"sampler", config.sampler == kEachOnce ? "" : config.sampler},
           {"seed", std::to_string(config.seed)}}} {}

ckpt::Value RunIdentity::Group::save() const {
  ckpt::Dict dict;
  for (const auto& [name, text] : fields) {
    dict.items.emplace_back(name, text);
  }
  for (const auto& [name, texts] : lists) {
    ckpt::List list;
    list.items.assign(texts.begin(), texts.end());
    dict.items.emplace_back(name, std::move(list));
  }
  return dict;
}

void RunIdentity::Group::compare(const ckpt::Value* saved) {
  differences.clear();
  for (const auto& [name, now] : fields) {
    const ckpt::Value* was = saved == nullptr ? nullptr : saved->find(name);
    const std::string text(was == nullptr ? "" : was->text());
    if (text != now && !is_unknown(name, text, now)) {
      differences.push_back({.field = name, .saved = text, .now = now});
    }
  }
  for (const auto& [name, now] : lists) {
    const std::vector<std::string> was =
        texts_in(saved == nullptr ? nullptr : saved->find(name));
    if (was != now) {
      differences.push_back(
          {.field = name,
           .saved = without(was, now),
           .now = without(now, was)});
    }
  }
}

std::string RunIdentity::digests() const {
  std::vector<std::string> texts;
  for (const Group* group : {&order_, &numerics_}) {
    for (const auto& [name, text] : group->fields) {
      if (!text.empty() &&
          std::ranges::find(kDigests, name) != kDigests.end()) {
        texts.push_back(text);
      }
    }
  }
  return join(texts, ", ");
}

bool RunIdentity::has_other_test_data() const {
  return std::ranges::any_of(
      numerics_.differences,
      [](const ChangedField& difference) {
        return difference.field == kTestDigest ||
               difference.field == "max_eval_samples";
      });
}

StatePart RunIdentity::part() {
  return {
      .key = "lockstep",
      .save =
          [this](ValueBuilder&) {
            return ckpt::Value::dict(
                {{"format", kFormat},
                 {"numerics", numerics_.save()},
                 {"order", order_.save()}});
          },
      .load =
          [this](const ckpt::Value& saved) {
            numerics_.compare(saved.find("numerics"));
            order_.compare(saved.find("order"));
          },
      .if_missing = IfMissing::kWarn};
}

std::string to_string(const std::vector<ChangedField>& differences) {
  std::vector<std::string> parts;
  parts.reserve(differences.size());
  for (const ChangedField& difference : differences) {
    parts.push_back(format(
        "{}: '{}', now '{}'",
        difference.field,
        escape(difference.saved),
        escape(difference.now)));
  }
  return join(parts, "; ");
}

} // namespace lockstep::train
