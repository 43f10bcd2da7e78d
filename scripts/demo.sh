#!/usr/bin/env bash
# ResNet18 on FashionMNIST, on one device, on two, and in two processes. Prints the
# times beside those of the published experiment, and shows that Python reads the
# result.
#
#   EPOCHS   passes over the 60,000 training images (1)
#   RUNS     where the run folders go (runs/demo-<time>)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prefix_env.sh
data=()
[ -z "${LOCKSTEP_PREFIX:-}" ] || data=(--data-dir "$LOCKSTEP_PREFIX/usr/share/datasets/fashion-mnist")
bin=build/release/bin
epochs=${EPOCHS:-1}
runs=${RUNS:-runs/demo-$(date +%Y%m%d-%H%M%S)}

# Several replicas run on the CPU: one thread each, so devices are cores.
one=cpu two='cpu*2' what="a replica on the CPU with one thread"

# train DEVICES FOLDER THREADS [STARTER...]
train() {
  "${@:4}" "$bin/lockstep" train --model resnet18 --data fashion-mnist "${data[@]}" \
    --devices "$1" --output "$2" --threads "$3" --epochs "$epochs" \
    --batch-size 128 --val-batch-size 250 --opt sgd --nesterov \
    --lr 0.025 --momentum 0.9 --weight-decay 5e-4 --lr-scheduler onecyclelr \
    --kernels lockstep \
    --log-interval 50 >/dev/null
}

echo "ResNet18 on FashionMNIST, $epochs epoch(s) of 60,000 images; a device is $what."
echo "Kernels: Lockstep's (--kernels lockstep); --kernels exact has PyTorch's bits."
echo
echo "== 1 device: --devices $one"
train "$one" "$runs/one" 1
echo
echo "== 2 devices: --devices $two"
train "$two" "$runs/two" 2
echo
echo "== 2 processes, each with one device: lockstep run --nproc-per-node 2"
train "$one" "$runs/ranks" 1 "$bin/lockstep" run --nproc-per-node 2

echo
echo "== Training with a test after each epoch: times, speed-up and accuracy"
.venv/bin/python scripts/demo_table.py "$runs"/{one,two,ranks}

file=$runs/two/checkpoint.pth.tar
echo
echo "== lockstep ckpt $file"
"$bin/lockstep" ckpt "$file"
echo
echo "== Python: torch.load(file, weights_only=True)"
.venv/bin/python - "$file" <<'PYTHON'
import sys, torch
file = torch.load(sys.argv[1], weights_only=True)
weights = sum(w.numel() for w in file["state_dict"].values())
print(f"{file['arch']}, {file['epoch']} epoch(s), best_acc1 {file['best_acc1']:.2f}: "
      f"{len(file['state_dict'])} tensors, {weights:,} numbers; keys {list(file)}")
PYTHON
