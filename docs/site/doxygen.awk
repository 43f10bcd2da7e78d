# Comments as doxygen wants them: the labels (Shape:, Errors:, ...) begin
# paragraphs, and indented lines that end like code are code.
match($0, /^ *\/\/\//) { front = substr($0, 1, RLENGTH); rest = substr($0, RLENGTH + 1) }
!match($0, /^ *\/\/\//) { in_code = 0; print; next }
rest ~ /^ (Shape|Units|Ownership|Threads|Errors):/ {
  sub(/^ /, "", rest)
  label = substr(rest, 1, index(rest, ":"))
  print front "\n" front " **" label "**" substr(rest, length(label) + 1)
  in_code = 0
  next
}
rest ~ /^   +[^ -].*([;{}]|; +\/\/ .*)$/ {
  if (!in_code) print front
  print front "     " rest
  in_code = 1
  next
}
{ if (in_code) print front; in_code = 0; print }
