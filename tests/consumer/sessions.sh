#!/bin/sh
# Runs the sessions of a golden file anew and prints them: sessions.sh GOLDEN
# Lines "$ command" of the file are commands; below each come its standard
# output, its standard error and its exit status.
grep '^\$ ' "$1" | while read -r _ command; do
  echo "\$ $command"
  sh -c "$command" 2>errors.txt </dev/null
  status=$?
  sed 's/^/stderr: /' errors.txt
  echo "exit $status"
done
