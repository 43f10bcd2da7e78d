#!/usr/bin/env bash
# Trains nets that another torch exported, in C++ and in this torch's Python, and
# compares the bits: scripts/program_versions.sh PYTHON FOLDER NET...
# PYTHON has the other torch, and torchvision for its nets (resnet50, vit_b_16, ...).
set -euo pipefail
cd "$(dirname "$0")/.."
other=$1
folder=$2
shift 2
mkdir -p "$folder"
script=tests/oracle/program_versions.py
"$other" "$script" export "$folder" "$@"
.venv/bin/python "$script" train "$folder" "$@"
scripts/build.sh release program_versions >&2
build/release/tests/program/program_versions "$folder" "$@" || true
.venv/bin/python "$script" compare "$folder" "$@"
