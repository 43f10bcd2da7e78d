#!/usr/bin/env bash
# Trains nets that another torch exported, in C++ and in this torch's Python, and
# compares the bits: scripts/program_versions.sh PYTHON FOLDER NET...
# PYTHON has the other torch, and for their nets torchvision (resnet50, vit_b_16, ...)
# and timm (timm.convnext_atto, ...).
set -euo pipefail
cd "$(dirname "$0")/.."
other=$1
folder=$2
shift 2
mkdir -p "$folder"
# Results of an earlier run would be compared again.
for net; do
  rm -f "$folder/$net".{pt2,batches.pt,ref.pt,cpp.pt}
done
script=tests/oracle/program_versions.py
status=0
"$other" "$script" export "$folder" "$@" || status=1
.venv/bin/python "$script" train "$folder" "$@" || status=1
scripts/build.sh release program_versions >&2
build/release/tests/program/program_versions "$folder" "$@" || status=1
.venv/bin/python "$script" compare "$folder" "$@" || status=1
exit "$status"
