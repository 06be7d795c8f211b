#!/bin/bash
# tools/check-format says so of a source that is not formatted, and never passes without having
# looked. Prints TAP. Argument: the tree.
tree=$(realpath "$1")
source "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"

small_tree() {  # the text of its only source
  rm -rf "$scratch/tree"
  mkdir -p "$scratch"/tree/{tools,drivers,libvipl,libmpi_lite,bench,tests}
  cp "$tree/tools/check-format" "$scratch/tree/tools/"
  cp "$tree/.clang-format" "$scratch/tree/"
  [[ -z $1 ]] || printf '%s\n' "$1" >"$scratch/tree/drivers/a.cpp"
}
says() {  # expected exit status, expected output, arguments
  local status=$1 text=$2 said rc
  shift 2
  said=$("$scratch/tree/tools/check-format" "$@" 2>"$scratch/stderr")
  rc=$?
  echo "exit $rc, expected $status: $said $(cat "$scratch/stderr")"
  [[ $rc == "$status" && $said == "$text" ]]
}
passes_when_formatted() { small_tree 'int x;' && says 0 ''; }
names_what_is_not() { small_tree 'int  x;' && says 1 drivers/a.cpp; }
mends_it() { small_tree 'int  x;' && says 1 drivers/a.cpp --fix && says 0 ''; }
notices_that_there_are_none() { small_tree '' && says 1 ''; }
notices_a_bad_style() { small_tree 'int x;' && echo 'Nonsense: [' >"$scratch/tree/.clang-format" && says 1 ''; }

echo "TAP version 13"
"$tree/tools/check-format" >"$scratch/whole"
if (($? == 77)); then
  skip "sources are formatted" "clang-format-14 is not installed"
  finish
fi
check "every source of this tree is formatted" "$tree/tools/check-format"
check "a formatted tree passes" passes_when_formatted
check "a source that is not formatted is named" names_what_is_not
check "--fix mends it" mends_it
check "a tree without sources does not pass" notices_that_there_are_none
check "nor one whose .clang-format cannot be read" notices_a_bad_style
finish
