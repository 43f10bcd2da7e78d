#!/usr/bin/env bash
# The notes' headline experiment: ResNet18 on FashionMNIST, on one device and
# then on two. Prints the notes' table and shows that Python reads the result.
#
#   EPOCHS   passes over the 60,000 training images (1)
#   RUNS     where the run folders go (runs/demo-<time>)
set -euo pipefail
cd "$(dirname "$0")/.."
bin=build/release/bin
epochs=${EPOCHS:-1}
runs=${RUNS:-runs/demo-$(date +%Y%m%d-%H%M%S)}

# Several replicas run on the CPU: one thread each, so devices are cores.
one=cpu two='cpu*2' what="a replica on the CPU with one thread"

# train DEVICES FOLDER THREADS
train() {
  "$bin/lockstep" train --model resnet18 --data fashion-mnist \
    --devices "$1" --output "$2" --threads "$3" --epochs "$epochs" \
    --batch-size 128 --val-batch-size 250 --opt sgd --nesterov \
    --lr 0.025 --momentum 0.9 --weight-decay 5e-4 --lr-scheduler onecyclelr \
    --log-interval 50 >/dev/null
}

# cells COLUMN FOLDER: that column of results.csv, a line per epoch.
cells() {
  awk -F, -v name="$1" '
    NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) column = i; next }
    { print $column }' "$2/results.csv"
}
seconds() { cells epoch_s "$1" | awk '{ sum += $1 } END { print sum }'; }
accuracy() { cells val_top1 "$1" | tail -n 1; }
as_minutes() { awk -v s="$1" 'BEGIN { printf "%dmin %02ds", s / 60, s % 60 }'; }

echo "ResNet18 on FashionMNIST, $epochs epoch(s) of 60,000 images; a device is $what."
echo
echo "== 1 device: --devices $one"
train "$one" "$runs/one" 1
echo
echo "== 2 devices: --devices $two"
train "$two" "$runs/two" 2

alone=$(seconds "$runs/one")
together=$(seconds "$runs/two")
speedup=$(awk -v a="$alone" -v b="$together" 'BEGIN { printf "%.2fx", a / b }')
echo
echo "== Training time and test accuracy"
row='%-10s %12s %12s %10s   %s\n'
printf "$row" model "1 device" "2 devices" speed-up "test accuracy (1, 2 devices)"
printf "$row" resnet18 "$(as_minutes "$alone")" "$(as_minutes "$together")" \
  "$speedup" "$(accuracy "$runs/one") %, $(accuracy "$runs/two") %"

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
