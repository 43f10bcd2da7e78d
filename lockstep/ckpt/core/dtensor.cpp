// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/dtensor.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/tensor_layout.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

using Extents = std::vector<std::int64_t>;

// Many DTensors of a hostile file may share one state, mesh, list or name,
// which is looked at for each: what is longer than PyTorch's is none of these.
constexpr std::size_t kMaxMeshAxes = 32;
constexpr std::size_t kMaxClassBytes = 64;

// What an object's state has under `key`; of a class with slots the state is a
// pair of dicts, one of which may be None.
const Value* state_field(const Value& state, std::string_view key) {
  const Tuple* pair = state.as_tuple();
  if (pair == nullptr || pair->items.size() != 2) {
    return short_field(state, key);
  }
  const Value* found = short_field(pair->items[0], key);
  return found == nullptr ? short_field(pair->items[1], key) : found;
}

// Null for a longer one.
const std::vector<Value>* short_list(const Value* value) {
  if (value == nullptr || value->elements() == nullptr) {
    return nullptr;
  }
  const std::vector<Value>& elements = *value->elements();
  return elements.size() <= kMaxMeshAxes ? &elements : nullptr;
}

std::optional<Extents> short_integers(const Value* value) {
  return value == nullptr ? std::nullopt : integers_of(*value, kMaxDimensions);
}

const Value* state_member(const Value* object, std::string_view key) {
  const Object* made = object == nullptr ? nullptr : object->as_object();
  return made == nullptr || made->state == nullptr
             ? nullptr
             : state_field(*made->state, key);
}

constexpr std::string_view kLocalTensor = "_local_tensor";
constexpr std::string_view kSpec = "_spec";
// What `nn.Parameter` sets on a tensor of another class.
constexpr std::string_view kParameterMark = "_is_param";

// True if the state has more than PyTorch's own attributes.
bool has_attributes(const Value& state) {
  const auto is_other = [](const Item& item) {
    const std::string_view key = item.first.text();
    return key != kLocalTensor && key != kSpec && key != kParameterMark;
  };
  const auto has_other = [&](const Value& part) {
    const Dict* dict = part.as_dict();
    return dict != nullptr && std::ranges::any_of(dict->items, is_other);
  };
  const Tuple* pair = state.as_tuple();
  return pair == nullptr ? has_other(state)
                         : std::ranges::any_of(pair->items, has_other);
}

// Ranks along an axis of a mesh: a number, or a tuple of some that count as
// one axis.
std::optional<std::int64_t> axis_size(const Value* shape) {
  if (shape == nullptr) {
    return std::nullopt;
  }
  if (const std::int64_t* size = shape->as_int()) {
    return *size;
  }
  const auto sizes = short_integers(shape);
  if (!sizes) {
    return std::nullopt;
  }
  std::int64_t product = 1;
  for (const std::int64_t size : *sizes) {
    if (__builtin_mul_overflow(product, size, &product)) {
      return std::nullopt;
    }
  }
  return product;
}

// Ranks along each axis. Versions of PyTorch keep them as the layout's axes, as
// its shape, or as a tensor of ranks.
std::optional<Extents> mesh_shape(const Value* mesh) {
  const Value* layout = state_member(mesh, "_layout");
  const Value* axes = state_member(layout, "axes");
  const Value* shape = state_member(layout, "shape");
  const Value* ranks = state_member(mesh, "mesh");
  if (axes == nullptr && shape == nullptr) {
    const Tensor* tensor = ranks == nullptr ? nullptr : ranks->as_tensor();
    return tensor == nullptr ? std::nullopt : std::optional(tensor->sizes);
  }
  if (axes == nullptr && shape->as_int() != nullptr) {
    return Extents{*shape->as_int()};
  }
  const auto* rows = short_list(axes == nullptr ? shape : axes);
  if (rows == nullptr) {
    return std::nullopt;
  }
  Extents sizes;
  for (const Value& row : *rows) {
    const auto size =
        axis_size(axes == nullptr ? &row : state_member(&row, "shape"));
    if (!size) {
      return std::nullopt;
    }
    sizes.push_back(*size);
  }
  return sizes;
}

// How the tensor is spread over one axis of the mesh.
struct AxisPlacement {
  std::string_view kind = {};
  std::optional<std::int64_t> dim = {};

  [[nodiscard]] std::string text() const {
    return format(
        "{}({})",
        escape(kind, 60),
        dim ? std::to_string(*dim) : std::string());
  }
};

// The last part of a dotted name.
std::string_view class_of(std::string_view name) {
  name.remove_prefix(name.size() - std::min(name.size(), kMaxClassBytes));
  return name.substr(name.rfind('.') + 1);
}

std::vector<AxisPlacement> placements_of(const Value* spec) {
  const auto* elements = short_list(state_member(spec, "placements"));
  std::vector<AxisPlacement> placements;
  for (std::size_t i = 0; elements != nullptr && i < elements->size(); ++i) {
    const Object* object = (*elements)[i].as_object();
    AxisPlacement placement{.kind = "?"};
    if (object != nullptr) {
      placement.kind = class_of(object->global);
      const Value* dim = state_member(&(*elements)[i], "dim");
      if (dim != nullptr && dim->as_int() != nullptr) {
        placement.dim = *dim->as_int();
      }
    }
    placements.push_back(placement);
  }
  return placements;
}

// A sum that lacks the other ranks' terms, or what nobody knows.
bool is_shared_out(const AxisPlacement& placement, std::int64_t ranks) {
  return ranks != 1 && placement.kind != "Replicate" &&
         placement.kind != "Shard" && placement.kind != "_StridedShard";
}

struct Piece {
  Extents begin = {};
  Extents extent = {};
};

// The part of `rank` of `ranks`, as torch.chunk cuts.
bool cut_axis(
    Piece& piece,
    std::int64_t dim,
    std::int64_t rank,
    std::int64_t ranks) {
  const std::int64_t count = std::ssize(piece.extent);
  const auto at = static_cast<std::size_t>(dim < 0 ? dim + count : dim);
  if (at >= piece.extent.size() || rank < 0 || rank >= ranks) {
    return false;
  }
  const std::int64_t size = piece.extent[at];
  const std::int64_t chunk = size / ranks + (size % ranks == 0 ? 0 : 1);
  const std::int64_t begin =
      chunk == 0 || rank > size / chunk ? size : rank * chunk;
  piece.begin[at] += begin;
  piece.extent[at] = std::min(chunk, size - begin);
  return true;
}

// Which elements the placements leave to this rank; nothing if they do not
// tell. `ranks`: along each axis of the mesh.
std::optional<Piece> piece_of(
    const Extents& sizes,
    const std::vector<AxisPlacement>& placements,
    const Value* mesh,
    const std::optional<Extents>& ranks) {
  const auto own = short_integers(state_member(mesh, "_coordinate_on_dim"));
  if (!ranks || !own || ranks->size() != placements.size() ||
      own->size() != placements.size() ||
      std::ranges::any_of(sizes, [](auto size) { return size < 0; })) {
    return std::nullopt;
  }
  Piece piece{.begin = Extents(sizes.size()), .extent = sizes};
  for (std::size_t i = 0; i < placements.size(); ++i) {
    if (placements[i].kind == "Replicate" || (*ranks)[i] == 1) {
      continue;
    }
    const auto& dim = placements[i].dim;
    if (placements[i].kind != "Shard" || !dim ||
        !cut_axis(piece, *dim, (*own)[i], (*ranks)[i])) {
      return std::nullopt;
    }
  }
  return piece;
}

std::string extents_text(const Extents& sizes) {
  return shape_text(Tensor{.sizes = sizes});
}

// "rows 5..10 of 10"; empty for all of it.
std::string own_part_text(
    const DTensor& tensor,
    const std::vector<AxisPlacement>& placements,
    const Value* mesh,
    const std::optional<Extents>& ranks) {
  const Extents& own = tensor.local->as_tensor()->sizes;
  const auto piece = piece_of(tensor.sizes, placements, mesh, ranks);
  if (piece && piece->extent == own) {
    Extents end = piece->begin;
    for (std::size_t d = 0; d < end.size(); ++d) {
      end[d] += own[d];
    }
    return piece_text(piece->begin, end, tensor.sizes);
  }
  return own == tensor.sizes ? "a part of a sum"
                             : format(
                                   "a piece {} of {}",
                                   extents_text(own),
                                   extents_text(tensor.sizes));
}

} // namespace

bool is_dtensor_class(std::string_view name) {
  return name.starts_with("torch.distributed.") && name.ends_with(".DTensor");
}

std::optional<DTensor> read_dtensor(const std::vector<Value>& parts) {
  constexpr std::size_t kParts = 4; // function, class, arguments, state
  constexpr std::size_t kArguments = 8; // class, dtype, size, ...
  const Object* function =
      parts.size() == kParts ? parts[0].as_object() : nullptr;
  const Object* type = function == nullptr ? nullptr : parts[1].as_object();
  const Tuple* args = type == nullptr ? nullptr : parts[2].as_tuple();
  if (args == nullptr || function->global != names::kRebuildWrapper ||
      !is_dtensor_class(type->global) || args->items.size() != kArguments) {
    return std::nullopt;
  }
  const DTypeValue* dtype = args->items[1].as_dtype();
  auto sizes = short_integers(&args->items[2]);
  const bool* requires_grad = args->items[kArguments - 1].as_bool();
  const Value* local = state_field(parts[3], kLocalTensor);
  if (dtype == nullptr || !sizes || requires_grad == nullptr ||
      local == nullptr || local->as_tensor() == nullptr) {
    return std::nullopt;
  }
  DTensor tensor{
      .local = local,
      .dtype = dtype->dtype,
      .sizes = *std::move(sizes),
      .requires_grad = *requires_grad};
  const Value* spec = state_field(parts[3], kSpec);
  const Value* mesh = state_member(spec, "mesh");
  const std::vector<AxisPlacement> placements = placements_of(spec);
  const auto ranks = mesh_shape(mesh);
  bool is_sum = placements.empty();
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < placements.size(); ++i) {
    const bool is_known = ranks && i < ranks->size();
    is_sum = is_sum || is_shared_out(placements[i], is_known ? (*ranks)[i] : 0);
    texts.push_back(placements[i].text());
  }
  tensor.is_whole = !is_sum && local->as_tensor()->sizes == tensor.sizes;
  const Value* mark = state_field(parts[3], kParameterMark);
  const bool* is_marked = mark == nullptr ? nullptr : mark->as_bool();
  tensor.is_parameter = is_marked != nullptr && *is_marked;
  tensor.has_attributes = has_attributes(parts[3]);
  tensor.place = (tensor.is_whole
                      ? ""
                      : own_part_text(tensor, placements, mesh, ranks) + ", ") +
                 join(texts, ", ");
  return tensor;
}

std::string piece_text(
    const std::vector<std::int64_t>& begin,
    const std::vector<std::int64_t>& end,
    const std::vector<std::int64_t>& whole) {
  bool is_rows = !end.empty();
  std::vector<std::string> ranges;
  std::vector<std::string> sizes;
  for (std::size_t d = 0; d < end.size(); ++d) {
    is_rows = is_rows && (d == 0 || (begin[d] == 0 && end[d] == whole[d]));
    ranges.push_back(format("{}:{}", begin[d], end[d]));
    sizes.push_back(std::to_string(whole[d]));
  }
  return is_rows
             ? format("rows {}..{} of {}", begin[0], end[0], whole[0])
             : format("[{}] of [{}]", join(ranges, ", "), join(sizes, ", "));
}

} // namespace lockstep::ckpt
