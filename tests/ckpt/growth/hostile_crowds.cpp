// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/dcp/dcp_metadata_pickle.h"
#include "lockstep/ckpt/load.h"
#include "tests/ckpt/bad_inputs/builders.h"
#include "tests/ckpt/growth/hostile_files.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt::growth {
namespace {

using bad_inputs::checkpoint;
using bad_inputs::put_tensor;
using bad_inputs::tensor_pickle;

std::string gets(std::size_t n) {
  Pickle pickle;
  pickle.raw("K\x01K\x02\x86").put(0).op('0').op(']').mark();
  pickle.raw(
      repeated(n / 2, [](std::size_t) { return std::string("h\0", 2); }));
  return checkpoint(pickle.op('e').stop());
}

// Each entry is kept and read back.
std::string puts(std::size_t n) {
  Pickle pickle;
  pickle.op(']').mark().raw(repeated(n / 12, [](std::size_t i) {
    return Pickle(0)
        .op('N')
        .op('r')
        .number(i, 4)
        .op('0')
        .op('j')
        .number(i, 4)
        .bytes();
  }));
  return checkpoint(pickle.op('e').stop());
}

// One list of many tensors under many keys of the file.
std::string keys_of_one_list(std::size_t n) {
  Pickle pickle;
  put_tensor(pickle).put(0).op('0').op(']').mark();
  pickle.raw(
      repeated(n / 4, [](std::size_t) { return std::string("h\0", 2); }));
  pickle.op('e').put(1).op('0').op('}').mark();
  pickle.raw(repeated(n / 24, [](std::size_t i) {
    return Pickle(0).text(std::to_string(i)).get(1).bytes();
  }));
  return checkpoint(pickle.op('u').stop());
}

// A module of many tensors under many names of its parent.
std::string shared_module(std::size_t n) {
  const auto tensors = [n](Pickle& pickle) {
    pickle.op('}').mark().raw(repeated(n / 24, [](std::size_t i) {
      return Pickle(0).text(std::to_string(i)).get(0).bytes();
    }));
    pickle.op('u');
  };
  Pickle pickle;
  put_tensor(pickle).put(0).op('0');
  pickle.global("m", "C").raw(")\x81}").text("_modules").op('}').op('s');
  pickle.text("_parameters");
  tensors(pickle);
  pickle.op('s').op('b').put(1).op('0');
  pickle.global("m", "C").raw(")\x81}").text("_modules").op('}').mark();
  pickle.raw(repeated(n / 24, [](std::size_t i) {
    return Pickle(0).text(std::to_string(i)).get(1).bytes();
  }));
  return checkpoint(pickle.op('u').op('s').op('b').stop());
}

// Storages whose records are longer than they say: a warning for each.
std::string warnings(std::size_t n) {
  Pickle pickle;
  pickle.op('}').mark();
  ZipBytes zip;
  for (std::size_t i = 0; i < n / 400; ++i) {
    const std::string key = std::to_string(i);
    pickle.text(key);
    put_tensor(pickle, {.key = key});
    zip.add("a/data/" + key, "0123456789abcdefX");
  }
  zip.add("a/data.pkl", pickle.op('u').stop().bytes());
  zip.add("a/version", "3\n");
  return zip.finish();
}

std::string equal_entries(std::size_t n) {
  ZipBytes zip;
  zip.add("a/data.pkl", tensor_pickle());
  for (std::size_t i = 0; i < n / 100; ++i) {
    zip.add("a/data/0", "0123456789abcdef");
  }
  return zip.finish();
}

// A group of many parameters, again and again; its state has names.
std::string named_groups(std::size_t n) {
  Pickle pickle;
  pickle.op('}').mark().text("state").op('}').text("w").op('}').op('s');
  pickle.text("param_groups").op(']').mark().op('}').text("params").op(']');
  pickle.mark().raw(repeated(n / 6, [](std::size_t i) {
    return std::string{'M', static_cast<char>(i), static_cast<char>(i >> 8)};
  }));
  pickle.op('e').op('s').put(0).raw(
      repeated(n / 4, [](std::size_t) { return std::string("h\0", 2); }));
  return checkpoint(pickle.op('e').op('u').stop());
}

// Each may be the end of an archive, whose directory is all that is before it.
std::string ends(std::size_t n) {
  std::string bytes = checkpoint();
  while (bytes.size() < n) {
    const auto front = static_cast<std::uint32_t>(bytes.size());
    put_le<std::uint32_t>(bytes, 0x06054b50);
    bytes.append(4, '\0');
    put_le<std::uint16_t>(bytes, static_cast<std::uint16_t>(front / 46));
    put_le<std::uint16_t>(bytes, static_cast<std::uint16_t>(front / 46));
    put_le<std::uint32_t>(bytes, front);
    put_le<std::uint32_t>(bytes, 0);
    put_le<std::uint16_t>(bytes, 0);
  }
  return bytes;
}

// Records that a text of the program may name.
std::string quoted(std::size_t n) {
  ZipBytes zip;
  std::string json;
  for (std::size_t i = 0; i < n / 200; ++i) {
    zip.add("a/tensors/" + std::to_string(i), "0123456789abcdef");
    json += "\"tensors/x\"";
  }
  zip.add("a/model.json", "{" + json + std::string(n / 4, ' ') + "}");
  return zip.finish();
}

std::string npy() {
  std::string text =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  text.append(64 - (10 + text.size() + 1) % 64, ' ');
  text += '\n';
  std::string bytes = "\x93NUMPY\x01";
  bytes.push_back('\0');
  put_le<std::uint16_t>(bytes, static_cast<std::uint16_t>(text.size()));
  return bytes + text + "1234";
}
std::string arrays(std::size_t n) {
  return repeated(n / npy().size(), [](std::size_t) { return npy(); });
}

// A member of a tar file: 512 bytes of header, and what is in it.
std::string member(const std::string& name, const std::string& content) {
  const auto octal = [](std::uint64_t value, std::size_t digits) {
    std::string text(digits, '0');
    for (std::size_t i = digits; i-- > 0; value /= 8) {
      text[i] = static_cast<char>('0' + value % 8);
    }
    return text;
  };
  std::string header = name + std::string(100 - name.size(), '\0');
  for (const std::uint64_t field : {0644, 0, 0}) {
    header += octal(field, 7) + std::string(1, '\0');
  }
  header += octal(content.size(), 11) + std::string(1, '\0') + octal(0, 11) +
            std::string(1, '\0') + "        0" + std::string(100, '\0') +
            "ustar" + std::string(1, '\0') + "00";
  header.resize(512, '\0');
  std::uint64_t sum = 0;
  for (const char c : header) {
    sum += static_cast<unsigned char>(c);
  }
  header.replace(148, 8, octal(sum, 6) + std::string(1, '\0') + " ");
  std::string body = content;
  body.resize((content.size() + 511) / 512 * 512, '\0');
  return header + body;
}
std::string members(std::size_t n) {
  return repeated(
             n / 1024,
             [](std::size_t i) {
               return member("m" + std::to_string(i), "N.");
             }) +
         std::string(1024, '\0');
}
// Pickles of numbers, with nothing behind each.
std::string tar_pickles(std::size_t n) {
  return member("storages", repeated(n / 2, [](std::size_t) { return "N."; })) +
         std::string(1024, '\0');
}

Files saved_as(const std::string& format, const std::string& path) {
  MemoryFs fs;
  const Value root =
      Value::dict({{"a", tensor_of<float>(DType::kFloat32, {1}, {1})}});
  const Status status = save(path, root, {.format = format}, fs);
  return {{path, status ? *read_text(fs, path) : ""}};
}

// One tensor of one shard under many names.
Files sharded_index(std::size_t n) {
  Files files = saved_as("safetensors", "1.safetensors");
  files["model.safetensors.index.json"] =
      R"({"weight_map":{"a":"1.safetensors")" +
      repeated(
          n / 30,
          [](std::size_t i) {
            return ",\"" + std::to_string(i) + R"(":"1.safetensors")";
          }) +
      "}}";
  return files;
}

DcpItem dcp_item(const std::string& name) {
  return {
      .name = name,
      .path = {name},
      .is_tensor = true,
      .dtype = DType::kUInt8};
}

// A tensor in rows that all begin at the same column.
Files dcp_chunks(std::size_t n) {
  DcpItem item = dcp_item("w");
  const auto count = static_cast<std::int64_t>(n / 250);
  item.sizes = {count, count, 1};
  for (std::int64_t i = 0; i < count; ++i) {
    item.chunks.push_back(
        {.offsets = {i, 0, 0},
         .sizes = {1, count, 1},
         .place = {.file = "__0_0.distcp"}});
  }
  return {{".metadata", dcp_metadata_pickle({item})}, {"__0_0.distcp", "x"}};
}

// Indices with the same offset, whose last number is a text.
Files dcp_offsets(std::size_t n) {
  const char* const module = "torch.distributed.checkpoint.metadata";
  Pickle pickle;
  pickle.mark().raw(
      repeated(n / 4, [](std::size_t) { return std::string("K\x01"); }));
  pickle.text("x").op('t').put(0).op('0');
  pickle.global(module, "MetadataIndex").put(1).op('0');
  pickle.global("torch.distributed.checkpoint.filesystem", "_StorageInfo");
  pickle.raw(")\x81}").mark().text("relative_path").text("__0_0.distcp");
  pickle.text("offset").int4(0).text("length").int4(0).op('u').op('b');
  pickle.put(2).op('0').text("fqn").put(3).op('0').text("offset").put(4);
  pickle.op('0').global(module, "Metadata").raw(")\x81}").mark();
  pickle.text("state_dict_metadata").op('}').text("storage_data").op('}');
  pickle.mark().raw(repeated(n / 108, [](std::size_t i) {
    return "h\1)\x81}(h\3" + Pickle(0).text(std::to_string(i)).bytes() +
           std::string("h\4h\0ubh\2", 8);
  }));
  return {
      {".metadata", pickle.op('u').op('u').op('b').stop().bytes()},
      {"__0_0.distcp", "x"}};
}

// Lists that have one element, far behind.
Files dcp_lists(std::size_t n) {
  std::vector<DcpItem> items;
  for (std::size_t i = 0; i < n / 300; ++i) {
    DcpItem item = dcp_item("w" + std::to_string(i));
    item.path.emplace_back(static_cast<std::int64_t>(n));
    item.name += "." + std::to_string(n);
    item.sizes = {0};
    items.push_back(std::move(item));
  }
  return {{".metadata", dcp_metadata_pickle(items)}};
}

} // namespace

std::vector<HostileFile> hostile_crowds() {
  return {
      {"GET", gets},
      {"PUT and GET", puts},
      {"keys of one list", keys_of_one_list},
      {"shared module", shared_module},
      {"warnings", warnings},
      {"equal entries", equal_entries},
      {"named groups", named_groups},
      {"ends of archives", ends},
      {"quoted names", quoted},
      {"arrays in a row", arrays},
      {"tar members", members},
      {"pickles in a member", tar_pickles}};
}

std::vector<HostileFolder> hostile_folders() {
  return {
      {"sharded index", "model.safetensors.index.json", sharded_index},
      {"DCP chunks", "", dcp_chunks},
      {"DCP offsets", "", dcp_offsets},
      {"DCP lists", "", dcp_lists}};
}

} // namespace lockstep::ckpt::growth
