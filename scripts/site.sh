#!/usr/bin/env bash
# Builds the site, English and Chinese, into build/site/html and checks its links.
#
#   scripts/site.sh            needs doxygen; makes its own virtual environment
#   scripts/site.sh --serve    the same, then http://127.0.0.1:8000
#
# Only the first run needs the network, for build/site/venv.
#   LOCKSTEP_SITE_URL   where the site will be
#   LOCKSTEP_REPO_URL   where the repository is
#   LOCKSTEP_PIP_ARGS   extra options for pip
set -euo pipefail
cd "$(dirname "$0")/.."
out=build/site
mkdir -p $out/api
command -v doxygen >/dev/null || { echo "site: install doxygen" >&2; exit 5; }

stamp=$out/venv/.lockstep-requirements
if ! cmp -s scripts/site-requirements.txt $stamp; then
  [ -x $out/venv/bin/python ] || python3 -m venv $out/venv
  # shellcheck disable=SC2086  # the variable holds several options
  $out/venv/bin/python -m pip install --quiet --disable-pip-version-check \
    ${LOCKSTEP_PIP_ARGS:-} -r scripts/site-requirements.txt
  cp scripts/site-requirements.txt $stamp
fi

python3 scripts/check_pages.py
python3 scripts/site_stage.py . $out
{
  echo "@INCLUDE = docs/site/Doxyfile"
  echo "OUTPUT_DIRECTORY = $out/api"
  python3 scripts/site_api.py --inputs .
} >$out/api/Doxyfile
rm -rf $out/api/xml
doxygen $out/api/Doxyfile 2>$out/api/doxygen.log
python3 scripts/site_api.py . $out/api/xml $out/docs/en $out/docs/zh

rm -rf $out/html
export PYTHONPATH=$PWD/scripts PYTHONDONTWRITEBYTECODE=1 NO_MKDOCS_2_WARNING=1
for language in en zh; do
  # --quiet would leave warnings uncounted.
  $out/venv/bin/mkdocs build --strict --config-file $out/mkdocs.$language.yml \
    >$out/$language.log 2>&1 || { grep -E 'WARN|ERROR|Error|Abort' $out/$language.log; exit 1; }
done
python3 scripts/site_check.py $out/html
if [ "${1:-}" = --serve ]; then
  exec python3 -m http.server --bind 127.0.0.1 --directory $out/html 8000
fi
