# SPDX-License-Identifier: BSD-3-Clause
"""Programs that are broken, or want what a file must not have.

program_bad.py FOLDER   writes FOLDER/NAME.pt2 for each row of EDITS, all made of
    one sound program, and prints the names
"""
import copy
import io
import json
import os
import sys
import warnings
import zipfile

import torch
from torch import nn

warnings.filterwarnings("ignore")
MODEL = "models/model.json"
WEIGHTS = "data/weights/model_weights_config.json"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 6)

    def forward(self, x):
        first, second = self.fc(x).split(3, dim=1)
        y = torch.cond(x.sum() > 0, lambda t: (t.sin(),), lambda t: (t.cos(),), (first,))[0]
        return y + second, torch.zeros(2, dtype=torch.float32) + 1


def sound():
    """The records of a program, JSON as objects."""
    program = torch.export.export(Net(), (torch.randn(2, 4),), strict=False)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    with zipfile.ZipFile(buffer) as archive:
        records = {info.filename.partition("/")[2]: archive.read(info) for info in archive.infolist()}
    for name in (MODEL, WEIGHTS):
        records[name] = json.loads(records[name])
    return records


def graph(records):
    return records[MODEL]["graph_module"]["graph"]


def node(records, target):
    return next(n for n in graph(records)["nodes"] if target in n["target"])


def signature(records):
    return records[MODEL]["graph_module"]["signature"]


def argument(records, target, name):
    return next(a for a in node(records, target)["inputs"] if a["name"] == name)


def unknown_operators(records):
    node(records, "aten.linear")["target"] = "torch.ops.aten.lineal.default"
    node(records, "aten.zeros")["target"] = "torch.ops.mylib.twice.default"
    node(records, "aten.add.Tensor")["target"] = "torch._functorch.predispatch._vmap"


def touches_files(records):
    name = {"name": "filename", "arg": {"as_string": os.path.join(sys.argv[1], "made")}}
    shared = {"name": "shared", "arg": {"as_bool": True}}
    size = {"name": "size", "arg": {"as_int": 8}}
    node(records, "aten.zeros").update(
        target="torch.ops.aten.from_file.default", inputs=[name, shared, size])


def unchecked_indices(records):
    node(records, "aten.zeros").update(target="torch.ops.aten._index_put_impl_.default", inputs=[
        {"name": "self", "arg": {"as_tensor": {"name": "x"}}},
        {"name": "indices", "arg": {"as_optional_tensors": [{"as_tensor": {"name": "x"}}]}},
        {"name": "values", "arg": {"as_tensor": {"name": "x"}}},
        {"name": "accumulate", "arg": {"as_bool": False}},
        {"name": "unsafe", "arg": {"as_bool": True}}])


def missing_argument(records):
    inputs = node(records, "aten.linear")["inputs"]
    inputs[:] = [a for a in inputs if a["name"] != "weight"]


def foreign_argument(records):
    node(records, "aten.linear")["inputs"].append({"name": "colour", "arg": {"as_int": 1}})


def wrong_kind(records):
    argument(records, "aten.linear", "weight")["arg"] = {"as_string": "w"}


def wrong_type(records):
    argument(records, "aten.zeros", "dtype")["arg"] = {"as_scalar_type": 99}


def too_many_results(records):
    node(records, "aten.linear")["outputs"].append({"as_tensor": {"name": "more"}})


def too_long_list(records):
    node(records, "aten.split")["outputs"][0]["as_tensors"].append({"name": "more"})


def number_for_tensor(records):
    argument(records, "aten.sum", "self")["arg"] = {"as_sym_int": {"as_name": "x"}}
    node(records, "aten.sum")["target"] = "torch.ops.aten.sym_size.int"
    node(records, "sym_size")["inputs"].append({"name": "dim", "arg": {"as_sym_int": {"as_name": "x"}}})


def add_zeros(records, name, sizes):
    new = copy.deepcopy(node(records, "aten.zeros"))
    new["name"] = name
    new["outputs"] = [{"as_tensor": {"name": name}}]
    new["inputs"][0]["arg"] = {"as_ints": sizes}
    graph(records)["nodes"].append(new)
    graph(records)["tensor_values"][name] = graph(records)["tensor_values"]["zeros"]


def no_heads(records):
    """LibTorch divides by the heads of keys."""
    add_zeros(records, "q", [1, 4, 5, 8])
    add_zeros(records, "k", [1, 0, 5, 8])
    inputs = [(name, {"as_tensor": {"name": name[0] if name == "query" else "k"}})
              for name in ("query", "key", "value")]
    inputs.append(("enable_gqa", {"as_bool": True}))
    graph(records)["nodes"].append({
        "target": "torch.ops.aten.scaled_dot_product_attention.default", "name": "attention", "metadata": {},
        "inputs": [{"name": name, "arg": arg} for name, arg in inputs],
        "outputs": [{"as_tensor": {"name": "attention"}}]})


def recurrent_sizes(records):
    """oneDNN's LSTM writes past the end of a state that is too small."""
    tensors = {"as_tensors": [{"name": "x3"}, {"name": "x3"}]}
    weights = {"as_tensors": [{"name": name} for name in ("w", "w", "w", "w")]}
    add_zeros(records, "x3", [1, 2, 4])
    add_zeros(records, "w", [16, 4])
    inputs = [("input", {"as_tensor": {"name": "x3"}}), ("hx", tensors), ("params", weights),
              ("has_biases", {"as_bool": True}), ("num_layers", {"as_int": 1}), ("dropout", {"as_float": 0.0}),
              ("train", {"as_bool": False}), ("bidirectional", {"as_bool": False}), ("batch_first", {"as_bool": True})]
    graph(records)["nodes"].append({
        "target": "torch.ops.aten.lstm.input", "name": "lstm", "metadata": {},
        "inputs": [{"name": name, "arg": arg} for name, arg in inputs],
        "outputs": [{"as_tensor": {"name": f"lstm_{i}"}} for i in range(3)]})


def gradient_of_integers(records):
    records[WEIGHTS]["config"]["fc.bias"]["tensor_meta"].update(dtype=5, sizes=[{"as_int": 3}])


def huge_shape(records):
    argument(records, "aten.zeros", "size")["arg"] = {"as_ints": [1 << 60]}


def outside_of_memory(records):
    node(records, "aten.zeros").update(target="torch.ops.aten.as_strided.default", inputs=[
        {"name": "self", "arg": {"as_tensor": {"name": "x"}}},
        {"name": "size", "arg": {"as_ints": [1 << 40]}},
        {"name": "stride", "arg": {"as_ints": [1]}}])


def other_operands(records):
    node(records, "cond")["inputs"][3]["arg"]["as_tensors"].append({"name": "x"})


def other_graph(records):
    node(records, "cond")["inputs"][1]["arg"] = {"as_tensor": {"name": "x"}}


def graph_results(records):
    node(records, "cond")["inputs"][1]["arg"]["as_graph"]["graph"]["outputs"].append(
        {"as_int": 3})


def pickled_weight(records):
    records[WEIGHTS]["config"]["fc.weight"]["use_pickle"] = True


def short_weight(records):
    records["data/weights/weight_0"] = records["data/weights/weight_0"][:-1]


def odd_name(records):
    for spec in signature(records)["input_specs"]:
        if "parameter" in spec:
            name = spec["parameter"]["parameter_name"]
            spec["parameter"]["parameter_name"] = name.replace(".", "..")
            config = records[WEIGHTS]["config"]
            config[name.replace(".", "..")] = config.pop(name)


def custom_object(records):
    spec = signature(records)["input_specs"]
    spec[-1] = {"custom_obj": {"arg": {"name": "x", "class_fqn": "X"}, "custom_obj_name": "tokenizer"}}
    records[MODEL]["graph_module"]["module_call_graph"][0]["signature"]["in_spec"] = json.dumps(
        [1, {"type": "builtins.tuple", "context": "null", "children_spec": [
            {"type": "builtins.tuple", "context": "null", "children_spec": []},
            {"type": "builtins.dict", "context": "[]", "children_spec": []}]}])


def gradient_result(records):
    spec = signature(records)["output_specs"]
    spec[0] = {"gradient_to_parameter": {"arg": spec[0]["user_output"]["arg"]["as_tensor"], "parameter_name": "fc.weight"}}
    records[MODEL]["graph_module"]["module_call_graph"][0]["signature"]["out_spec"] = json.dumps(
        [1, {"type": None, "context": None, "children_spec": []}])


def changes(records, kind, key):
    """The first result becomes a new value of something that is not there."""
    outputs = graph(records)["outputs"]
    outputs.insert(0, copy.deepcopy(outputs[0]))
    signature(records)["output_specs"].insert(
        0, {kind: {"arg": copy.deepcopy(outputs[0]["as_tensor"]), key: "nothing"}})


def unknown_buffer(records):
    changes(records, "buffer_mutation", "buffer_name")


def unknown_input(records):
    changes(records, "user_input_mutation", "user_input_name")


def leaf_arguments(records):
    records[MODEL]["graph_module"]["module_call_graph"][0]["signature"]["in_spec"] = json.dumps(
        [1, {"type": None, "context": None, "children_spec": []}])


def no_arguments(records):
    records[MODEL]["graph_module"]["module_call_graph"] = []


def number_for_type(records):
    """LibTorch looks types up in a table, without a check."""
    argument(records, "aten.zeros", "dtype")["arg"] = {"as_int": -100}


def number_for_layout(records):
    node(records, "aten.zeros")["inputs"].append({"name": "layout", "arg": {"as_int": 100}})


def unchecked_view(records):
    node(records, "aten.zeros").update(target="torch.ops.aten._reshape_alias.default", inputs=[
        {"name": "self", "arg": {"as_tensor": {"name": "x"}}},
        {"name": "size", "arg": {"as_ints": [1 << 26]}},
        {"name": "stride", "arg": {"as_ints": [1]}}])


def private_operator(records):
    node(records, "aten.zeros").update(target="torch.ops.aten._cummax_helper.default", inputs=[])


def packed_sequences(records):
    """LibTorch takes the first number of an empty list of batch sizes."""
    node(records, "aten.zeros").update(target="torch.ops.aten.lstm.data", inputs=[])


def unchecked_sparse(records):
    node(records, "aten.zeros").update(
        target="torch.ops.aten.sparse_csr_tensor.crow_col_value_size", inputs=[])


def users_private(records):
    node(records, "aten.zeros").update(target="torch.ops.mylib._twice.default", inputs=[])


def backward_operator(records):
    node(records, "aten.zeros").update(target="torch.ops.aten.nll_loss_backward.default", inputs=[])


def short_statistics(records):
    """Python's layer checks them before the operator is called."""
    x = {"as_tensor": {"name": "x"}}
    nothing = {"as_none": True}
    zeros = {"as_tensor": {"name": "zeros"}}
    inputs = [("input", x), ("weight", nothing), ("bias", nothing), ("running_mean", zeros), ("running_var", zeros),
              ("training", {"as_bool": True}), ("momentum", {"as_float": 0.1}), ("eps", {"as_float": 1e-5}),
              ("cudnn_enabled", {"as_bool": False})]
    graph(records)["nodes"].append({
        "target": "torch.ops.aten.batch_norm.default", "name": "bn", "metadata": {},
        "inputs": [{"name": name, "arg": arg} for name, arg in inputs],
        "outputs": [{"as_tensor": {"name": "bn"}}]})


EDITS = [
    unknown_buffer, unknown_input, leaf_arguments, no_arguments, number_for_type, number_for_layout,
    unchecked_view, private_operator, backward_operator, short_statistics,
    packed_sequences, unchecked_sparse, users_private,
    unknown_operators, touches_files, unchecked_indices, missing_argument, foreign_argument, wrong_kind, wrong_type,
    too_many_results, too_long_list, number_for_tensor, recurrent_sizes, no_heads,
    gradient_of_integers, huge_shape, outside_of_memory, other_operands,
    other_graph, graph_results, pickled_weight, short_weight, odd_name, custom_object, gradient_result]


def main():
    torch.manual_seed(0)
    records = sound()
    for edit in EDITS:
        edited = copy.deepcopy(records)
        edit(edited)
        path = os.path.join(sys.argv[1], edit.__name__ + ".pt2")
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in edited.items():
                text = content if isinstance(content, bytes) else json.dumps(content)
                archive.writestr("net/" + name, text)
        print(edit.__name__)


main()
