#!/usr/bin/env bash
# Tries an installed lockstep-torch without a compiler: scripts/try_torch_wheel.sh ENV [FOLDER]
# ENV is a virtual environment, FOLDER (a temporary one) gets what it writes. Reads a
# checkpoint, and trains on pictures that it makes: on the CPU, on two simulated
# devices and in two processes.
#
#   LOCKSTEP_PTH   a checkpoint to read instead of testdata/valid/dataparallel.pt
#   LOCKSTEP_DEMO  not empty: also an epoch of FashionMNIST, from Debian's package
set -euo pipefail
here=$(realpath "$(dirname "$0")/..")
bin=$(realpath "$1")/bin
folder=${2:-$(mktemp -d)}
file=$(realpath "${LOCKSTEP_PTH:-$here/testdata/valid/dataparallel.pt}")
rm -rf "$folder" && mkdir -p "$folder" && cd "$folder"
export PATH=$bin:/usr/bin:/bin

ran() { echo "\$ $*"; "$@"; }
last() { ran "${@:2}" >out.txt 2>err.txt || { cat out.txt err.txt >&2; return 1; }; tail -n "$1" out.txt; }

ran lockstep --version
ran lockstep ckpt "$file"
ran python -c "import lockstep, sys
tree = lockstep.load(sys.argv[1])
print(lockstep.scan(sys.argv[1]).verdict, type(tree).__name__, len(lockstep.keys(sys.argv[1])))" "$file"
ran python -m lockstep.cmake
last 30 lockstep doctor
grep -q 'lockstep-train' out.txt
last 3 lockstep summary resnet18

# Two classes of 24 pictures, told apart by their brightness.
python - <<'PYTHON'
import os, random, struct, zlib
def part(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
random.seed(0)
for name, low in (("dark", 0), ("light", 150)):
    os.makedirs(f"pictures/{name}")
    for number in range(24):
        rows = b"".join(b"\0" + bytes(random.randrange(low, low + 100) for _ in range(96)) for _ in range(32))
        with open(f"pictures/{name}/{number}.png", "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0))
                       + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))
PYTHON
train=(lockstep train --data pictures --model resnet18 --img-size 32 --epochs 3
  --batch-size 8 --opt adamw --lr 0.001)
last 3 "${train[@]}" --devices cpu --output runs/cpu
last 3 "${train[@]}" --devices 'sim*2' --output runs/sim
last 3 lockstep run --nproc-per-node 2 "${train[@]}" --devices cpu --output runs/ranks
last 3 lockstep eval runs/cpu
ran lockstep predict runs/cpu pictures/dark/0.png pictures/light/0.png --top 1 | tee out.txt
grep -q dark/0.png,dark out.txt && grep -q light/0.png,light out.txt
ran lockstep ckpt runs/sim/checkpoint.pth.tar >out.txt && grep -E '^(format|tensors|names)' out.txt
ran python -c "import lockstep
print(lockstep.load('runs/ranks/checkpoint.pth.tar')['epoch'], 'epochs')"
if [ -n "${LOCKSTEP_DEMO:-}" ]; then
  last 4 lockstep train --model resnet18 --data fashion-mnist --devices 'cpu*2' --epochs 1 \
    --batch-size 128 --lr 0.025 --lr-scheduler onecyclelr --kernels lockstep --output runs/demo
fi
echo "lockstep-torch works in $bin"
