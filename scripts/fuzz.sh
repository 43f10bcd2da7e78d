#!/usr/bin/env bash
# Fuzzes the readers, each target for FUZZ_SECONDS (60): scripts/fuzz.sh [TARGET...]
#
# Seeds come from testdata; inputs that reach new code gather in
# build/fuzz/corpus/TARGET. A crash ends the script; its input lies in
# build/fuzz/crashes and belongs into testdata/corrupt once it is understood.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh fuzz
seconds=${FUZZ_SECONDS:-60}
work=build/fuzz
mkdir -p "$work/crashes"
python3 scripts/fuzz_seeds.py "$work/seeds"

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  mapfile -t targets < <("$work/bin/ckpt_fuzz" 2>/dev/null)
fi
# Growth shows in large inputs; the others find more by small ones.
max_len() {
  case $1 in
    pickle | scan) echo $((1 << 20)) ;;
    *) echo 32768 ;;
  esac
}

for target in "${targets[@]}"; do
  echo "== $target, $seconds s"
  mkdir -p "$work/corpus/$target"
  "$work/bin/ckpt_fuzz" "--target=$target" "$work/corpus/$target" "$work/seeds" \
    -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 \
    -malloc_limit_mb=256 -max_len="$(max_len "$target")" -dict=fuzz/checkpoint.dict \
    -artifact_prefix="$work/crashes/$target-" -print_final_stats=1 \
    -verbosity=0 2>"$work/crashes/$target.log" || {
      tail -n 40 "$work/crashes/$target.log"
      exit 1
    }
  grep -E "number_of_executed_units|average_exec_per_sec" \
    "$work/crashes/$target.log"
done
