#!/bin/sh
# How many lines of code the second file adds or changes: OLD NEW. Comments and
# empty lines do not count.
for file in "$@"; do
  grep -vE '^ *(//.*)?$' "$file" >"$(basename "$file").code"
done
diff "$(basename "$1").code" "$(basename "$2").code" | grep -c '^>'
