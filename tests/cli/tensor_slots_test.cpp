// SPDX-License-Identifier: BSD-3-Clause
//
// What each command does with a tensor in each place where a value can hold
// one. The outcomes are the table of docs/tensor_places.md;
// LOCKSTEP_UPDATE_GOLDEN=1 writes it anew. No outcome is silence.
#include "tests/ckpt/tensor_slots.h"

#include <cstdlib>
#include <functional>

#include <gmock/gmock.h>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/ckpt/core/format.h"
#include "lockstep/ckpt/load/format_table.h"
#include "tests/cli/command_test.h"

namespace lockstep::test {
namespace {

using ckpt::slots::in_slot;
using ckpt::slots::kHiddenBytes;
using ckpt::slots::kSlots;
using ckpt::slots::Put;
using ckpt::slots::Slot;
using ckpt::slots::SlotFile;

constexpr const char* kSilent = "SILENT";
constexpr std::string_view kBegin = "<!-- table -->\n";

class TensorSlotCommands : public CommandTest {
 protected:
  struct Column {
    std::string title = {};
    std::function<std::string(const Slot& slot)> outcome = {};
  };

  void write(const std::string& name, const Put& put, const SlotFile& file = {})
      const {
    std::filesystem::remove(path(name));
    write_file_atomically(
        real_fs(),
        path(name),
        slot_file(put, file),
        {.durable = false})
        .value();
  }

  // The name of the hidden tensor, as lists give it.
  [[nodiscard]] std::string name_in(const std::string& file) const {
    std::string found;
    const auto loaded = ckpt::load(path(file)).value();
    ckpt::for_each_tensor(
        loaded.root,
        [&found](const std::string& name, const ckpt::Tensor& tensor) {
          found = tensor.storage->key == "1" ? name : found;
        })
        .value();
    return found;
  }

  [[nodiscard]] bool keeps_hidden(const std::string& file) const {
    const auto loaded = ckpt::load(path(file));
    bool found = false;
    if (loaded) {
      ckpt::NodeWalk().run(loaded->root, [&found](const ckpt::Value& node) {
        const ckpt::Tensor* tensor = node.as_tensor();
        found |=
            tensor != nullptr &&
            as_text(tensor->storage->source->load().value()) == kHiddenBytes;
        return true;
      });
    }
    return found;
  }

  [[nodiscard]] bool says(const std::string& name) const {
    return (text("out.txt") + text("err.txt")).find(name) != std::string::npos;
  }

  std::string told(const std::string& args, int status, const char* word) {
    return run(args) == status && says(name_in("x.pt")) ? word : kSilent;
  }

  // Of a command that makes o.pt.
  std::string made(const std::string& args, const std::string& out = "o.pt") {
    std::filesystem::remove_all(path(out));
    const int status = run(args);
    if (status != 0) {
      return says("(E_") ? "refused" : kSilent;
    }
    return keeps_hidden(out)       ? "kept"
           : says(name_in("x.pt")) ? "left out, named"
                                   : kSilent;
  }

  std::string listed(const Slot& slot, const std::string& args) {
    write("x.pt", in_slot(slot));
    return told(args, 0, "named");
  }

  std::string changed(const Slot& slot, const std::string& args) {
    write("x.pt", in_slot(slot), {.front = "module."});
    return made(args);
  }

  [[nodiscard]] std::vector<Column> columns() {
    std::vector<Column> columns{
        {"ls", [this](const Slot& s) { return listed(s, "ls x.pt"); }},
        {"tree",
         [this](const Slot& s) { return listed(s, "tree x.pt --json"); }},
        {"show", [this](const Slot& s) { return shown(s); }},
        {"summary", [this](const Slot& s) { return counted_in(s); }},
        {"digest", [this](const Slot& s) { return digested(s); }},
        {"diff", [this](const Slot& s) { return differs(s); }},
        {"verify", [this](const Slot& s) { return damaged(s, "verify x.pt"); }},
        {"scan", [this](const Slot& s) { return scanned(s); }},
        {"repair",
         [this](const Slot& s) {
           return damaged(s, "repair --force x.pt o.pt");
         }},
        {"pick",
         [this](const Slot& s) {
           return changed(s, "pick x.pt module.x -o o.pt");
         }},
        {"strip",
         [this](const Slot& s) { return changed(s, "strip x.pt -o o.pt"); }},
        {"rename",
         [this](const Slot& s) {
           return changed(s, "rename x.pt 's/w$/v/' -o o.pt");
         }},
        {"drop",
         [this](const Slot& s) {
           return changed(s, "drop x.pt module.w -o o.pt");
         }},
        {"merge", [this](const Slot& s) { return merged(s); }},
        {"average",
         [this](const Slot& s) {
           write("x.pt", in_slot(s));
           return made("average x.pt x.pt -o o.pt");
         }},
        {"match", [this](const Slot& s) { return matched(s); }},
        {"prefix",
         [this](const Slot& s) {
           write("x.pt", in_slot(s));
           return made("prefix x.pt -o o.pt");
         }},
        {"extract-model", [this](const Slot& s) { return extracted(s); }}};
    for (const ckpt::FormatWriter& writer : ckpt::format_writers()) {
      const std::string format(writer.name);
      columns.push_back({"to " + format, [this, format](const Slot& s) {
                           write("x.pt", in_slot(s));
                           return made(
                               "convert x.pt o." + format + " --to " + format,
                               "o." + format);
                         }});
    }
    return columns;
  }

  [[nodiscard]] std::string table() {
    const auto all = columns();
    std::string head = "| a tensor as |";
    std::string line = "|---|";
    for (const Column& column : all) {
      head += " " + column.title + " |";
      line += "---|";
    }
    std::string rows = head + "\n" + line + "\n";
    for (const Slot& slot : kSlots) {
      rows += "| " + std::string(slot.name) + " |";
      for (const Column& column : all) {
        const std::string outcome = column.outcome(slot);
        rows += " " + outcome + " |";
        EXPECT_NE(outcome, kSilent)
            << column.title << " of " << slot.name << ":\n"
            << text("out.txt") << text("err.txt");
      }
      rows += "\n";
    }
    return rows;
  }

 private:
  std::string shown(const Slot& slot) {
    write("x.pt", in_slot(slot));
    return run("show x.pt '" + name_in("x.pt") + "'") == 0 ? "shown" : kSilent;
  }

  std::string counted_in(const Slot& slot) {
    write("x.pt", in_slot(slot));
    const std::size_t count = names("x.pt").size();
    return run("x.pt --json") == 0 && says(format("\"tensors\":{},\"el", count))
               ? "counted"
               : kSilent;
  }

  std::string digested(const Slot& slot) {
    const std::string outcome = listed(slot, "digest --lines x.pt");
    return text("out.txt").find(name_in("x.pt")) != std::string::npos ? outcome
           : outcome == kSilent                                       ? outcome
                                : "left out, named";
  }

  std::string differs(const Slot& slot) {
    write("x.pt", in_slot(slot));
    write("y.pt", in_slot(slot), {.bytes = "another 16 bytes"});
    return told("diff x.pt y.pt", 1, "named");
  }

  std::string damaged(const Slot& slot, const std::string& args) {
    write("x.pt", in_slot(slot), {.is_damaged = true});
    const int status = run(args);
    return status != 0 && says(name_in("x.pt")) ? "named" : kSilent;
  }

  std::string merged(const Slot& slot) {
    write("first.pt", ckpt::slots::put_plain, {.front = "first."});
    write("x.pt", in_slot(slot));
    return made("merge first.pt x.pt o.pt");
  }

  // Of tensors `scan` says nothing: it names the calls around them, or that
  // there are none to name.
  std::string scanned(const Slot& slot) {
    write("x.pt", in_slot(slot));
    const int status = run("scan --json x.pt");
    return status == 0 && says("\"verdict\":\"clean\"")     ? "clean"
           : status == 1 && says("\"findings\":[{\"name\"") ? "calls named"
                                                            : kSilent;
  }

  // What is no entry of the weights has no name in the other file.
  std::string matched(const Slot& slot) {
    write("x.pt", in_slot(slot));
    std::filesystem::remove(path("o.pt"));
    const bool is_said =
        run("match x.pt x.pt -o o.pt") != 0 && says(name_in("x.pt"));
    return is_said && !std::filesystem::exists(path("o.pt")) ? "refused"
                                                             : kSilent;
  }

  // The model is the entry "x"; the place is an attribute of it.
  std::string extracted(const Slot& slot) {
    write("x.pt", [&slot](ckpt::Pickle& pickle) {
      ckpt::slots::put_module(pickle, [&slot](ckpt::Pickle& inner) {
        inner.text("_buffers").op('}').text("w");
        ckpt::slots::put_plain(inner);
        inner.op('s').op('s').text("x");
        slot.put(inner, ckpt::slots::put_hidden);
      });
    });
    std::filesystem::remove(path("o.pt"));
    return run("extract-model x.pt o.pt --key x") == 0 &&
                   says(name_in("x.pt").substr(2))
               ? "left out, named"
               : kSilent;
  }
};

TEST_F(TensorSlotCommands, SayWhatTheyDoWithIt) {
  const std::string path = LOCKSTEP_SOURCE_DIR "/docs/tensor_places.md";
  const std::string page = read_text(real_fs(), path).value();
  const std::size_t begin = page.find(kBegin);
  ASSERT_NE(begin, std::string::npos);
  const std::string front = page.substr(0, begin + kBegin.size());
  const std::string now = front + table();
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  if (std::getenv("LOCKSTEP_UPDATE_GOLDEN") != nullptr) {
    write_file_atomically(
        real_fs(),
        path,
        now,
        {.durable = false, .replace = true})
        .value();
    return;
  }
  EXPECT_EQ(page, now);
}

TEST_F(TensorSlotCommands, SayWhichTensorsOfAShardTheIndexLacks) {
  put("dataparallel.pt", "t.pt");
  ASSERT_EQ(run("convert t.pt s.safetensors"), 0) << text("err.txt");
  const auto all = names("s.safetensors");
  ASSERT_GT(all.size(), 1U);
  write_file_atomically(
      real_fs(),
      path("index.json"),
      R"({"weight_map":{")" + all[0] + R"(":"s.safetensors"}})",
      {.durable = false})
      .value();
  for (const char* args :
       {"ls index.json",
        "convert index.json o.pt",
        "merge t.pt index.json m.pt --replace",
        "digest index.json"}) {
    EXPECT_EQ(run(args), 0) << args << text("err.txt");
    EXPECT_TRUE(says("W_INDEX_UNUSED")) << args;
  }
}

} // namespace
} // namespace lockstep::test
