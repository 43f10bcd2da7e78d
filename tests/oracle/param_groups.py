# SPDX-License-Identifier: BSD-3-Clause
"""Parameter groups as timm makes them (param_groups_weight_decay,
param_groups_layer_decay with the group matcher of its ResNet), and by rules.

torch 2.13.
"""
import fnmatch
import re

RESNET_BLOCK = re.compile(r"^layer(\d+)\.(\d+)")


def layers_of_resnet(names):
    """timm: stem ^conv1|bn1|maxpool, blocks ^layer(\\d+)\\.(\\d+), the rest last."""
    blocks = sorted({m.groups() for m in map(RESNET_BLOCK.match, names) if m})
    layers = {}
    for name in names:
        block = RESNET_BLOCK.match(name)
        layers[name] = (
            blocks.index(block.groups()) + 1 if block
            else 0 if name.startswith(("conv1", "bn1")) else len(blocks) + 1)
    return layers


def layers_of_mlp(names):
    parts = []
    for name in names:
        part = name.rsplit(".", 1)[0]
        if part not in parts:
            parts.append(part)
    return {name: parts.index(name.rsplit(".", 1)[0]) for name in names}


def no_decay_first(model, config):
    decay, plain = [], []
    for name, parameter in model.named_parameters():
        if parameter.ndim <= 1 or name.endswith(".bias"):
            plain.append(parameter)
        else:
            decay.append(parameter)
    return [{"params": plain, "weight_decay": 0.0},
            {"params": decay, "weight_decay": config["weight_decay"]}]


def by_layer(model, config):
    names = [name for name, _ in model.named_parameters()]
    is_resnet = config["model"].startswith("resnet")
    layers = layers_of_resnet(names) if is_resnet else layers_of_mlp(names)
    last = max(layers.values())
    groups = {}
    for name, parameter in model.named_parameters():
        is_plain = config["no_decay_norms"] and parameter.ndim <= 1
        group = groups.setdefault((layers[name], is_plain), {
            "params": [],
            "lr": config["lr"] * config["layer_decay"] ** (last - layers[name]),
            "weight_decay": 0.0 if is_plain else config["weight_decay"]})
        group["params"].append(parameter)
    return list(groups.values())


def by_rules(model, config, rules):
    groups = {}
    for name, parameter in model.named_parameters():
        number, rule = next(
            ((i, rule) for i, rule in enumerate(rules)
             if fnmatch.fnmatchcase(name, rule["match"])),
            (len(rules), {}))
        group = groups.setdefault(number, {
            "params": [],
            "lr": config["lr"] * rule.get("lr_scale", 1),
            "weight_decay": rule.get("weight_decay", config["weight_decay"])})
        group["params"].append(parameter)
    return list(groups.values())


def groups_of(model, config):
    if config["rules"]:
        return by_rules(model, config, config["rules"])
    if config["layer_decay"] != 1:
        return by_layer(model, config)
    if config["no_decay_norms"]:
        return no_decay_first(model, config)
    return model.parameters()
