// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/dcp/dcp_metadata_pickle.h"

#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/pickle/pickle_output.h"

namespace lockstep::ckpt {
namespace {

using internal::PickleOutput;

class MetadataPickler {
 public:
  std::string run(
      const std::vector<DcpItem>& items,
      const std::vector<DcpEmpty>& empty) {
    begin_object("metadata.Metadata");
    begin_dict();
    out_.literal("state_dict_metadata");
    begin_dict();
    for (const DcpItem& item : items) {
      out_.literal(item.name);
      item.is_tensor ? tensor(item)
                     : begin_object("metadata.BytesStorageMetadata");
    }
    end_dict();
    out_.literal("planner_data");
    begin_dict();
    for (const DcpItem& item : items) {
      out_.literal(item.name);
      path(item.path);
    }
    end_dict();
    out_.literal("storage_data");
    begin_dict();
    for (const DcpItem& item : items) {
      places(item);
    }
    end_dict();
    out_.literal("storage_meta");
    out_.op(Op::kNone);
    out_.literal("version");
    out_.literal("1.0.0");
    if (!empty.empty()) {
      out_.literal(kDcpEmpty);
      empty_dicts(empty);
    }
    end_object();
    return std::move(out_).finish();
  }

 private:
  // An instance; its state and BUILD follow.
  void begin_object(std::string_view name) {
    out_.global(format("torch.distributed.checkpoint.{}", name));
    out_.op(Op::kEmptyTuple);
    out_.op(Op::kNewObj);
  }

  void begin_dict() {
    out_.op(Op::kEmptyDict);
    out_.op(Op::kMark);
  }

  void end_dict() {
    out_.op(Op::kSetItems);
  }

  // A dict that is the state of an object.
  void end_object() {
    end_dict();
    out_.op(Op::kBuild);
  }

  void size(const std::vector<std::int64_t>& sizes) {
    out_.global("torch.Size");
    out_.integer_tuple(sizes);
    out_.tuple(1);
    out_.op(Op::kReduce);
  }

  void tensor(const DcpItem& item) {
    begin_object("metadata.TensorStorageMetadata");
    begin_dict();
    out_.literal("properties");
    properties(item);
    out_.literal("size");
    size(item.sizes);
    out_.literal("chunks");
    out_.op(Op::kEmptyList);
    for (const DcpChunk& chunk : item.chunks) {
      begin_object("metadata.ChunkStorageMetadata");
      begin_dict();
      out_.literal("offsets");
      size(chunk.offsets);
      out_.literal("sizes");
      size(chunk.sizes);
      end_object();
      out_.op(Op::kAppend);
    }
    end_object();
  }

  void properties(const DcpItem& item) {
    begin_object("metadata.TensorProperties");
    out_.op(Op::kMark);
    out_.global(format("torch.{}", dtype_info(item.dtype).name));
    out_.global("torch.serialization._get_layout");
    out_.literal("torch.strided");
    out_.tuple(1);
    out_.op(Op::kReduce);
    out_.boolean(item.requires_grad);
    out_.global("torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING");
    out_.integer(0); // contiguous
    out_.tuple(1);
    out_.op(Op::kReduce);
    out_.boolean(false); // pinned memory
    constexpr std::size_t kParts = 5;
    out_.tuple(kParts);
    out_.op(Op::kBuild);
  }

  void empty_dicts(const std::vector<DcpEmpty>& empty) {
    out_.op(Op::kEmptyList);
    for (const DcpEmpty& dict : empty) {
      std::vector<PathStep> row{static_cast<std::int64_t>(dict.position)};
      row.insert(row.end(), dict.path.begin(), dict.path.end());
      path(row);
      out_.op(Op::kAppend);
    }
  }

  void path(const std::vector<PathStep>& steps) {
    constexpr std::size_t kWithoutMark = 3;
    if (steps.size() > kWithoutMark) {
      out_.op(Op::kMark);
    }
    for (const PathStep& step : steps) {
      if (const std::string* text = std::get_if<std::string>(&step)) {
        out_.literal(*text);
      } else {
        out_.integer(std::get<std::int64_t>(step));
      }
    }
    out_.tuple(steps.size());
  }

  void places(const DcpItem& item) {
    if (!item.is_tensor) {
      begin_index(item.name);
      out_.op(Op::kNone);
      out_.literal("index");
      out_.op(Op::kNone);
      end_object();
      place(item.place);
    }
    for (std::size_t i = 0; i < item.chunks.size(); ++i) {
      begin_index(item.name);
      size(item.chunks[i].offsets);
      out_.literal("index");
      out_.integer(static_cast<std::int64_t>(i));
      end_object();
      place(item.chunks[i].place);
    }
  }

  void begin_index(const std::string& name) {
    begin_object("metadata.MetadataIndex");
    begin_dict();
    out_.literal("fqn");
    out_.literal(name);
    out_.literal("offset");
  }

  void place(const DcpPlace& place) {
    begin_object("filesystem._StorageInfo");
    begin_dict();
    out_.literal("relative_path");
    out_.literal(place.file);
    out_.literal("offset");
    out_.integer(static_cast<std::int64_t>(place.offset));
    out_.literal("length");
    out_.integer(static_cast<std::int64_t>(place.length));
    out_.literal("transform_descriptors");
    out_.op(Op::kNone);
    end_object();
  }

  PickleOutput out_;
};

} // namespace

std::string dcp_metadata_pickle(
    const std::vector<DcpItem>& items,
    const std::vector<DcpEmpty>& empty) {
  return MetadataPickler().run(items, empty);
}

} // namespace lockstep::ckpt
