#!/usr/bin/env bash
# Trains twice from the same seed, with PyTorch in Python and with Lockstep, and
# compares every bit: the loss of each step of ResNet18, and the weights and the
# optimizer's state of a perceptron after three epochs. FashionMNIST, CPU.
#
#   scripts/same_bits.sh             # after make build
#   THREADS=2 scripts/same_bits.sh   # both programs with two threads
#
# LOCKSTEP_PROGRAM and LOCKSTEP_PYTHON name others than this tree's.
set -euo pipefail
cd "$(dirname "$0")/.."
lockstep=${LOCKSTEP_PROGRAM:-build/release/bin/lockstep}
python=${LOCKSTEP_PYTHON:-.venv/bin/python}
threads=${THREADS:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What both programs are told, in the flags that they share.
common=(--threads "$threads" --seed 0 --max-train-samples 1280)

resnet18_losses() {
  "$python" tests/oracle/train_losses.py resnet18 0 "$threads" 1280 64 1 \
    /usr/share/datasets/fashion-mnist off highest >"$work/python.txt"
  "$lockstep" train --model resnet18 "${common[@]}" --batch-size 64 \
    --epochs 1 --lr 0.1 --weight-decay 5e-4 --lr-scheduler constant \
    --max-eval-samples 64 --log-interval 1 --output "$work/resnet18" --quiet >/dev/null
  "$python" - "$work/python.txt" "$work/resnet18/steps.csv" <<'PYTHON'
import csv, struct, sys
bits = lambda number: "0x" + struct.pack(">f", number).hex()
with open(sys.argv[1]) as file:
    python = [bits(float.fromhex(line)) for line in file]
with open(sys.argv[2]) as file:
    lockstep = [bits(float(row["loss"])) for row in csv.DictReader(file)]
equal = sum(a == b for a, b in zip(python, lockstep))
print(f"ResNet18: {equal} of {len(python)} losses equal; the last one is "
      f"{python[-1]} in Python, {lockstep[-1]} in Lockstep")
sys.exit(python != lockstep or not python)
PYTHON
}

perceptron_state() {
  "$python" examples/python/train.py "${common[@]}" --epochs 3 \
    --output "$work/python" >/dev/null
  "$lockstep" train --model mlp "${common[@]}" --epochs 3 \
    --output "$work/lockstep" --quiet >/dev/null
  printf 'Perceptron, weights and optimizer after three epochs: '
  # Python's script does not save the generator's state.
  "$lockstep" ckpt drop "$work/lockstep/checkpoint.pth.tar" rng \
    -o "$work/shared.pt" >/dev/null
  "$lockstep" ckpt diff "$work/python/checkpoint.pth.tar" "$work/shared.pt"
}

resnet18_losses
perceptron_state
