# SPDX-License-Identifier: BSD-3-Clause
"""Writes testdata/hostile: files that try to slip names past a scanner.

    .venv/bin/python tests/oracle/make_hostile.py [FOLDER]
Nothing here does harm: every payload names `os.system` or the like with the
argument "true". Each NAME gets a NAME.expect.json: verdict, names, notes. The
comment at a case says which trick it plays; most were seen in the wild.
"""
import io
import json
import pathlib
import pickle
import struct
import sys
import tarfile
import zipfile

CALL = b"cos\nsystem\n(X\x04\x00\x00\x00truetR"
PLAIN = b"\x80\x02}q\x00(X\x01\x00\x00\x00aK\x01u."
LEGACY = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")


def text(word):
    raw = word.encode()
    return b"\x8c" + bytes([len(raw)]) + raw


def calling(call=CALL):
    return b"\x80\x02" + call + b"."


def stack_global(module, name):
    return b"\x80\x04" + text(module) + text(name) + b"\x93)R."


def archive(records, flags=0, root="a", method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for name, payload in records.items():
            # A ZipInfo has a fixed date: running this twice changes nothing.
            z.writestr(zipfile.ZipInfo(f"{root}/{name}" if root else name), payload, method)
    data = bytearray(out.getvalue())
    if flags:
        at = data.find(b"PK\x01\x02")
        while at >= 0:
            data[at + 8:at + 10] = struct.pack("<H", flags)
            at = data.find(b"PK\x01\x02", at + 4)
    return bytes(data)


def checkpoint(pickled, **more):
    return archive({"data.pkl": pickled, "byteorder": "little", "version": "3\n", **more})


SCRIPT = b"\x80\x02c__torch__\nM\nq\x00)\x81q\x01}q\x02b."


def script(extra=b"", constants="constants.pkl"):
    """A TorchScript program."""
    pickled = b"\x80\x02" + extra + (b"0" if extra else b"") + SCRIPT[2:]
    return archive({"data.pkl": pickled, "code/__torch__.py": "class M(Module):\n  pass\n",
                    constants: b"\x80\x02).", "version": "3\n"})


def graph(target):
    return json.dumps({"graph_module": {"graph": {"nodes": [{"target": target}]}}})


def graph_alone(text):
    """Without a record that says what it is."""
    return archive({"models/model.json": text, "version": "3\n"})


def program(target="torch.ops.aten.relu.default", size="Symbol('s7', positive=True, integer=True)",
            guard="L['x'].size()[0] <= 9", context="[]", **records):
    """A program of torch.export: what scan looks at."""
    value = {"dtype": 7, "sizes": [{"as_expr": {"expr_str": size, "hint": {"as_int": 5}}}]}
    node = {"target": target, "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}}]}
    spec = json.dumps([1, {"type": "builtins.dict", "context": context, "children_spec": []}])
    graph = {"graph_module": {"graph": {"nodes": [node], "tensor_values": {"x": value}},
                              "module_call_graph": [{"fqn": "", "signature": {"in_spec": spec}}]},
             "guards_code": [guard], "schema_version": {"major": 8, "minor": 20}}
    return archive({"archive_format": "pt2", "models/model.json": json.dumps(graph),
                    "data/constants/model_constants_config.json": json.dumps({"config": {"c": {
                        "path_name": "opaque_obj_0", "is_param": False, "use_pickle": True, "tensor_meta": None}}}),
                    **records})


def legacy(third, tail=b""):
    def number(n):
        return b"\x80\x02M" + struct.pack("<H", n) + b"."
    return LEGACY + number(1001) + b"\x80\x02}q\x00." + third + b"\x80\x02]q\x00." + tail


def tar(**members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive_:
        for name, payload in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(payload)
            archive_.addfile(info, io.BytesIO(payload))
    return out.getvalue()


def member(name, payload, size=None, kind=b"0", prefix=b""):
    """A header that need not tell the truth, and the payload."""
    info = tarfile.TarInfo(name)
    info.size = len(payload) if size is None else size
    info.type = kind
    header = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    header[345:345 + len(prefix)] = prefix
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + payload + bytes(-len(payload) % 512)


def tar_with(*members):
    sound = (member(name, PLAIN) for name in ("sys_info", "storages", "tensors", "pickle"))
    return b"".join([*sound, *members, bytes(1024)])


def second_archive():
    """An archive whose comment holds another one, and a byte behind it."""
    outer, inner = (bytearray(checkpoint(p)) for p in (PLAIN, calling()))
    directory, = struct.unpack_from("<I", inner, len(inner) - 6)
    at = directory
    while inner[at:at + 4] == b"PK\x01\x02":
        offset, = struct.unpack_from("<I", inner, at + 42)
        struct.pack_into("<I", inner, at + 42, offset + len(outer))
        at += 46 + inner[at + 28]
    struct.pack_into("<I", inner, len(inner) - 6, directory + len(outer))
    struct.pack_into("<H", outer, len(outer) - 2, len(inner) + 1)
    return bytes(outer + inner + b"x")


def length_of(number):
    """A safetensors file without tensors whose header has this length."""
    return struct.pack("<Q", number) + b"{}".ljust(number)


def npy(payload, descr="|O", quote="'"):
    header = f"{{'descr': {quote}{descr}{quote}, 'fortran_order': False, 'shape': (1,), }}"
    header = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + payload


def nested(inner):
    return b"\x80\x03cbuiltins\nlist\nC" + bytes([len(inner)]) + inner + b"\x85R."


def cut_tail(data):
    return data[:data.index(b"PK\x01\x02")]


def break_crc(data):
    at = data.index(b"system")
    return data[:at + 4] + b"F" + data[at + 5:]


SYSTEM = ["os.system"]
GETATTR = ["builtins.getattr"]
FORMATS = b"ctorch.distributed.checkpoint.metadata\n_MEM_FORMAT_ENCODING\n"
MEMBER = text("TORCH_CONTIGUOUS_FORMAT")


def lookups(owner=FORMATS, name=MEMBER, then=b"R"):
    """A member of the enum, then getattr from the memo once more."""
    return (b"\x80\x04cbuiltins\ngetattr\n\x94" + FORMATS + MEMBER + b"\x86R"
            + b"h\x00" + owner + name + b"\x86" + then + b".")


def cases():
    """File, bytes, verdict, names found, details noted."""
    yield "call.pkl", calling(), "found", SYSTEM, []
    yield "call.pt", checkpoint(calling()), "found", SYSTEM, []
    # Protocol 0 has no PROTO byte to look for.
    yield "protocol0.pkl", b"cos\nsystem\n(S'true'\ntR.", "found", SYSTEM, []
    # INST and OBJ call without REDUCE.
    yield "inst.pkl", b"(S'true'\nios\nsystem\n.", "found", SYSTEM, []
    yield "obj.pkl", b"\x80\x02(cos\nsystem\nX\x04\x00\x00\x00trueo.", "found", SYSTEM, []
    # The name is made of two strings, one of them from the memo.
    yield "stack_global.pkl", stack_global("os", "system"), "found", SYSTEM, []
    yield "memo.pkl", (b"\x80\x04" + text("os") + b"\x940" + text("system") + b"\x940"
                       + b"h\x00h\x01\x93)R."), "found", SYSTEM, []
    # The module's name comes out of a tuple: no string to see.
    yield "computed.pkl", b"\x80\x04N" + text("system") + b"\x93)R.", "found", ["?"], []
    # A dotted name walks from an allowed module to any function.
    yield "dotted.pkl", stack_global("torch", "serialization.os.system"), "found", \
        ["torch:serialization.os.system"], []
    yield "old_name.pkl", b"\x80\x02c__builtin__\neval\n(X\x01\x00\x00\x001tR.", "found", \
        ["__builtin__.eval"], []
    # How Debian 12's Python spells a member of an enum, and what looks like it.
    yield "enum_member.pkl", lookups(), "clean", [], []
    yield "getattr_other.pkl", lookups(name=text("__class__")), "found", GETATTR, []
    yield "getattr_module.pkl", lookups(b"ctorch\nserialization\n"), "found", \
        GETATTR + ["torch.serialization"], []
    yield "getattr_new.pkl", lookups(then=b"\x81"), "found", GETATTR, []
    yield "getattr_kept.pkl", lookups(then=b""), "found", GETATTR, []
    # The result is thrown away.
    yield "popped.pkl", b"\x80\x02" + CALL + b"0N.", "found", SYSTEM, []
    # The payload runs before the stream breaks.
    yield "then_broken.pkl", b"\x80\x02" + CALL + b"\x00", "found", SYSTEM, ["E_OPCODE"]
    yield "then_cut.pt", checkpoint(b"\x80\x02" + CALL), "found", SYSTEM, ["E_PICKLE"]
    # A second pickle behind the first.
    yield "trailing.pt", checkpoint(PLAIN + calling()), "found", SYSTEM, ["W_TRAILING_PICKLE"]
    yield "trailing.pkl", PLAIN + calling(), "found", SYSTEM, ["W_TRAILING_PICKLE"]
    # A record that only a hand-made loader reads; its name hides what it is.
    yield "extra_record.pt", checkpoint(PLAIN, **{"extra.pkl": calling()}), "found", SYSTEM, []
    yield "unnamed_record.pt", checkpoint(PLAIN, notes=calling()), "found", SYSTEM, []
    yield "upper_case.pt", archive({"DATA.PKL": calling(), "version": "3\n"}), "found", SYSTEM, []
    yield "no_root.pt", archive({"data.pkl": calling()}, root=""), "found", SYSTEM, []
    # A pickle inside bytes, or an archive inside an archive.
    yield "nested.pkl", nested(calling()), "found", ["builtins.list", "os.system"], ["W_NESTED_PICKLE"]
    yield "nested_latin1.pkl", pickle.dumps([calling()], protocol=2), "found", SYSTEM, ["W_NESTED_PICKLE"]
    yield "nested_archive.pt", checkpoint(PLAIN, inner=checkpoint(calling())), "found", SYSTEM, []
    # Broken archives that lenient readers still open.
    yield "flag_bits.pt", archive({"data.pkl": calling()}, flags=1), "found", SYSTEM, ["E_ENCRYPTED"]
    yield "no_directory.pt", cut_tail(checkpoint(calling())), "found", SYSTEM, ["E_ZIP_NO_EOCD"]
    yield "prefix.pt", b"MZ" + checkpoint(calling()), "found", SYSTEM, ["E_PREFIX"]
    yield "pickle_before_zip.pt", calling() + checkpoint(PLAIN), "found", SYSTEM, []
    yield "bad_crc.pt", break_crc(checkpoint(calling())), "found", ["os.systFm"], ["E_CRC"]
    yield "deflated.pt", archive({"data.pkl": calling()}, method=zipfile.ZIP_DEFLATED), "found", SYSTEM, []
    # Only one of a legacy file's five pickles is the object.
    yield "legacy.pt", legacy(PLAIN), "clean", [], []
    yield "legacy_object.pt", legacy(calling()), "found", SYSTEM, []
    yield "legacy_system.pt", LEGACY + b"\x80\x02M\xe9\x03." + calling(), "found", SYSTEM, ["E_PICKLE"]
    yield "legacy_after.pt", legacy(PLAIN, calling()), "found", SYSTEM, ["W_TRAILING_PICKLE"]
    # Tar files of 2017, and arrays of objects.
    yield "storages.tar", tar(sys_info=PLAIN, pickle=PLAIN, tensors=PLAIN, storages=calling()), \
        "found", SYSTEM, []
    yield "plain.tar", tar(sys_info=PLAIN, pickle=PLAIN, tensors=PLAIN, storages=PLAIN), "clean", [], []
    yield "objects.npy", npy(calling()), "found", SYSTEM, []
    yield "numbers.npy", npy(b"\x00" * 8, "<f8"), "clean", [], []
    yield "objects.npz", archive({"x.npy": npy(calling())}, root=""), "found", SYSTEM, []
    # Two headers of which readers see one: behind what looks like the end mark,
    # or inside of what an extended header or a folder claims.
    yield "end_mark.tar", tar_with(
        member("", b"", prefix=b"x"), member("pickle", calling())), "found", SYSTEM, ["E_TAR"]
    inside = member("pickle", calling())
    yield "two_sizes.tar", tar_with(
        member("p", b"12 size=512\n", kind=b"x"),
        member("note", bytes(512) + inside, size=512 + len(inside))), "found", SYSTEM, ["E_TAR"]
    yield "all_sizes.tar", tar_with(
        member("p", b"12 size=512\n", kind=b"g"), member("note", inside)), "found", SYSTEM, ["E_TAR"]
    yield "folder.tar", tar_with(member("d", inside, kind=b"5")), "found", SYSTEM, ["E_TAR"]
    # What NumPy takes for objects.
    yield "object_letter.npy", npy(calling(), "O", '"'), "found", SYSTEM, []
    yield "object_word.npy", npy(calling(), "object"), "found", SYSTEM, []
    yield "object_order.npy", npy(calling(), "<O"), "found", SYSTEM, []
    yield "object_escape.npy", npy(calling(), "\\x4f"), "found", SYSTEM, []
    yield "object_noise.npy", npy(b"\0" * 8, "O"), "unreadable", [], ["E_NPY_OBJECT"]
    yield "second_archive.pt", second_archive(), "found", SYSTEM, ["E_ZIP_AMBIGUOUS"]
    # A length that looks like PROTO.
    yield "length_128.safetensors", length_of(128), "clean", [], []
    yield "length_640.safetensors", length_of(640), "clean", [], []
    yield "ext.pkl", b"\x80\x02\x82\x05.", "found", ["?extension.5"], []
    yield "no_root_plain.pt", archive(
        {"data.pkl": PLAIN, "byteorder": "little", "version": "3\n"}, root=""), "clean", [], []
    # Not a common folder, as in any zip file: not an attack.
    yield "two_folders.zip", archive({"a/x.txt": "x", "b/y.pkl": PLAIN}, root=""), "clean", [], []
    yield "clean.pt", checkpoint(PLAIN), "clean", [], []
    yield "clean.pkl", PLAIN, "clean", [], []
    yield "protocol9.pkl", b"\x80\x09N.", "unreadable", [], []
    yield "broken.pkl", b"\x80\x02K\x01\x00", "unreadable", [], ["E_OPCODE"]
    # Classes of a program are LibTorch's; not so without the program, or where
    # something else stands beside them. Its code is not judged.
    yield "script.pt", script(), "clean", [], []
    yield "script_alone.pt", checkpoint(SCRIPT), "found", ["__torch__.M"], []
    # LibTorch does not care for the case of a record's name.
    yield "script_any_case.pt", script(constants="Constants.pkl"), "clean", [], []
    yield "script_and_call.pt", script(extra=CALL), "found", SYSTEM, []
    yield "script_dotted.pt", script(b"c__torch__\nM.forward\n"), "found", \
        ["__torch__:M.forward"], []
    # The mobile interpreter loads a program of bytecode alone; LibTorch before
    # 1.4 wrote no constants.
    yield "script_mobile.ptl", archive(
        {"data.pkl": SCRIPT, "bytecode.pkl": PLAIN, "version": "3\n"}), "clean", [], []
    yield "script_model_json.pt", archive(
        {"model.json": "{}", "attributes.pkl": SCRIPT, "version": "1\n"}), "clean", [], []
    # Python's unpicklers ask for no PROTO and take any number of them; a module's
    # name is any text.
    no_proto = text("os") + text("system") + b"\x93" + text("true") + b"\x85R."
    lines = b"Vos\nVsystem\n\x93Vtrue\n\x85R."
    hyphen = CALL + b"0cmy-module\nx\n."
    odd = SYSTEM + ["my-module.x"]
    yield "no_proto.joblib", no_proto, "found", SYSTEM, []
    yield "no_proto_lines.data", lines, "found", SYSTEM, []
    yield "no_proto_lines.pkl", lines, "found", SYSTEM, []
    yield "two_protos.dat", b"\x80\x02" + no_proto[:4] + b"\x80\x05" + no_proto[4:], "found", SYSTEM, []
    yield "hyphen.joblib", hyphen, "found", odd, []
    yield "no_proto.tar", tar(sys=lines), "found", SYSTEM, []
    yield "hyphen_record.pt", checkpoint(PLAIN, **{"tensors.bin": hyphen}), "found", odd, []
    # No storage has the key.
    yield "data_record.pt", checkpoint(PLAIN, **{"data/7": no_proto}), "found", SYSTEM, []
    # PyTorch evaluates what a program says of sizes, imports what it says of arguments, calls what its nodes name.
    evaluated = "__import__('os').system('true')"
    yield "program.pt2", program(), "clean", [], []
    from_file = "torch.ops.aten.from_file.default"
    yield "program_file.pt2", program(from_file), "found", [from_file], []
    yield "program_function.pt2", program("torch.os.system"), "found", ["torch.os.system"], []
    yield "program_library.pt2", program("torch.ops.mine.twice.default"), "found", ["torch.ops.mine.twice.default"], []
    yield "program_size.pt2", program(size=evaluated), "found", ["sympy.sympify: " + evaluated], []
    yield "program_guard.pt2", program(guard=evaluated), "found", ["exec: " + evaluated], []
    yield "program_message.pt2", program(guard='L["x"] + "'), "found", ['exec: L["x"] + "'], []
    yield "program_import.pt2", program(context=json.dumps(
        {"default_factory_module": "antigravity", "default_factory_name": "geohash", "dict_context": []})), "found", \
        ["import: antigravity.geohash"], []
    # Python takes the keys of a dict in any order; the last of two equal ones counts.
    yield "program_import_back.pt2", program(context=json.dumps(
        {"default_factory_name": "system", "default_factory_module": "os", "dict_context": []})), "found", \
        ["import: os", "import: os.system"], []
    yield "program_import_twice.pt2", program(context='{"default_factory_module": "os", "default_factory_name": '
        '"path", "default_factory_name_": "sep", "default_factory_name": "system"}'), "found", \
        ["import: os.path", "import: os.system"], []
    yield "program_inputs.pt2", program(**{"data/sample_inputs/model.pt": checkpoint(calling())}), "found", SYSTEM, []
    yield "program_object.pt2", program(**{"data/constants/opaque_obj_0": calling()}), "found", SYSTEM, []
    yield "program_no_object.pt2", program(**{"data/constants/opaque_obj_0": b"12345678"}), "unreadable", [], ["E_PICKLE"]
    yield "program_compiled.pt2", program(**{"data/aotinductor/model/x.so": b"\x7fELF"}), "found", ["compiled code"], []
    yield "program_cut.pt2", program(**{"models/more.json": '{"graph_module": {"x": '}), "unreadable", [], ["E_PROGRAM"]
    # All words of a text count, not only those before a bracket.
    called = "max(['import os'], key=exec)"
    yield "program_call.pt2", program(size="(exec)('1')"), "found", ["sympy.sympify: (exec)('1')"], []
    yield "program_key.pt2", program(guard=called), "found", ["exec: " + called], []
    # Any record in models/ is a graph: PyTorch cuts five letters off its name.
    yield "program_no_json.pt2", program(**{"models/model2.JSON": graph(from_file)}), "found", [from_file], []
    yield "program_any_name.pt2", program(**{"models/x": graph(from_file)}), "found", [from_file], []
    # All of an AOTInductor package is loaded, compiled or handed to compiled code.
    yield "program_blob.pt2", program(**{"data/aotinductor/model/x.bin": b"x"}), "found", ["compiled code"], []
    yield "program_metal.pt2", program(**{"Data/AOTInductor/model/x.metal": b"x"}), "found", ["compiled code"], []
    # By the name of the record: tables do not say whether it is unpickled.
    lines = b"cos\nsystem\n(S'true'\ntR."
    table = "data/constants/model_constants_config.json"

    def rows(path, use_pickle):
        meta = {"dtype": 7, "sizes": [{"as_int": 1}], "requires_grad": False, "device": {"type": "cpu"},
                "strides": [{"as_int": 1}], "storage_offset": {"as_int": 0}, "layout": 7}
        return json.dumps({"config": {"c": {
            "path_name": path, "is_param": False, "use_pickle": use_pickle, "tensor_meta": meta}}})

    yield "program_opaque.pt2", program(**{
        table: rows("opaque_obj_0", False), "data/constants/opaque_obj_0": lines}), "found", SYSTEM, []
    yield "program_any_case.pt2", program(**{
        table: rows("Tensor_0", True), "data/constants/tensor_0": lines}), "found", SYSTEM, []
    yield "program_packed.pt2", program(**{
        table: rows("model.pt", False), "data/constants/model.pt": lines}), "found", SYSTEM, []
    yield "program_no_pickle.pt2", program(**{"data/weights/model.pt": b"12345678"}), "unreadable", [], ["E_PICKLE"]
    yield "program_no_table.pt2", program(**{table: "{"}), "unreadable", [], ["E_PROGRAM"]
    # No JSON, but Python's parser takes it.
    yield "program_nan.pt2", graph_alone('{"x": NaN, "graph_module": {"target": "torch.os.system"}}'), \
        "found", ["torch.os.system"], []
    yield "program_deep.pt2", graph_alone('{"x": ' + "[" * 400 + "]" * 400 + "}"), "unreadable", [], ["E_DEPTH"]
    yield "program_format_case.pt2", archive({"Archive_Format": "pt2", "models/model.json": "null["}), \
        "unreadable", [], ["E_PROGRAM"]
    # JSON inside JSON, whose letters may be escaped.
    member_of = {"__enum__": True, "fqn": "antigravity:x", "name": "y"}
    hidden = json.dumps([member_of]).replace("_enum", "\\u005fenum").replace("fqn", "\\u0066qn")
    yield "program_escape.pt2", program(context=hidden), "found", ["import: antigravity"], []
    # What nobody read is not clean.
    yield "foreign_tail.pkl", PLAIN + b"foreign", "unreadable", [], ["E_TRAILING"]
    yield "packed.joblib", b"x\x9c\x01", "unreadable", [], ["E_WRONG_FORMAT"]
    yield "page.pt", b"<!DOCTYPE html><html></html>", "unreadable", [], ["E_WRONG_FORMAT"]


def main():
    here = pathlib.Path(__file__).resolve().parents[2]
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else here / "testdata/hostile")
    folder.mkdir(parents=True, exist_ok=True)
    for file, data, verdict, names, notes in cases():
        (folder / file).write_bytes(data)
        expected = {"verdict": verdict, "names": names, "notes": notes}
        (folder / (file + ".expect.json")).write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
