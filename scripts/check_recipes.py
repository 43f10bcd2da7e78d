#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads the recipes of packaging/: conda's by rattler-build, which renders it
(py-rattler-build of PyPI). All, and CITATION.cff, must name the version of
lockstep/base/version.h.
"""

import json
import pathlib
import re

import rattler_build

from check_common import finish

ROOT = pathlib.Path(__file__).resolve().parent.parent


def conda_version():
    folder = ROOT / "packaging/conda"
    recipe = rattler_build.Stage0Recipe.from_file(str(folder / "recipe.yaml"))
    (variant,) = recipe.render(
        rattler_build.VariantConfig.from_file(str(folder / "variants.yaml")))
    return str(variant.recipe.package.version)


def vcpkg_version():
    path = ROOT / "packaging/vcpkg/lockstep-ckpt/vcpkg.json"
    return json.loads(path.read_text())["version"]


def main():
    problems = []
    header = (ROOT / "lockstep/base/version.h").read_text()
    expected = re.search(r'kVersion = "([0-9.]+)"', header)[1]
    debian = ROOT / "packaging/debian"
    changelog = (debian / "changelog").read_text()
    # One version of symbols for all releases: what is linked needs this one.
    symbols = (debian / "liblockstep-ckpt0.symbols").read_text()
    citation = (ROOT / "CITATION.cff").read_text()
    found = {
        "conda": conda_version(),
        "vcpkg": vcpkg_version(),
        "debian": re.match(r"lockstep \(([0-9.]+)-", changelog)[1],
        "debian's symbols": re.search(r"\(symver\)LOCKSTEP_0 (\S+)", symbols)[1],
        "CITATION.cff": re.search(r"^version: (\S+)", citation, re.M)[1],
    }
    problems += [f"{name} has version {version}, expected {expected}"
                 for name, version in found.items() if version != expected]
    finish("recipes", problems, ", ".join(found))


main()
