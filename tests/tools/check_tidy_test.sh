#!/bin/bash
# tools/check-tidy names a mistake in a product source, and never passes without having looked. The
# tree itself is looked at by tools/run-tests, beside other things. Prints TAP. Argument: the tree.
tree=$(realpath "$1")
source "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"

small_tree() {  # the directory of its only source, and its text
  rm -rf "$scratch/tree"
  mkdir -p "$scratch/tree/tools" "$scratch/tree/build" "$scratch/tree/$1"
  cp "$tree/tools/check-tidy" "$scratch/tree/tools/"
  cp "$tree/.clang-tidy" "$scratch/tree/"
  printf '%s\n' "$2" >"$scratch/tree/$1/a.cpp"
  cat >"$scratch/tree/build/compile_commands.json" <<JSON
[
  {
    "directory": "$scratch/tree/build",
    "command": "c++ -c ../$1/a.cpp",
    "file": "../$1/a.cpp"
  }
]
JSON
}
unity_tree() {  # as a unity build does: the source, which includes a header, is included by another
  small_tree drivers '#include "a.hpp"'
  printf '%s\n' "$1" >"$scratch/tree/drivers/a.hpp"
  mkdir -p "$scratch/tree/build/drivers/a.p"
  echo "#include \"$scratch/tree/build/../drivers/a.cpp\"" >"$scratch/tree/build/drivers/a.p/a-unity0.cpp"
  sed -i 's|\.\./drivers/a\.cpp|drivers/a.p/a-unity0.cpp|' "$scratch/tree/build/compile_commands.json"
}
says() {  # expected exit status, a pattern of what is printed; none: nothing is; arguments
  local rc
  "$scratch/tree/tools/check-tidy" "${@:3}" >"$scratch/stdout" 2>"$scratch/stderr"
  rc=$?
  echo "exit $rc, expected $1: $(cat "$scratch/stdout" "$scratch/stderr")"
  [[ $rc == "$1" ]] || return 1
  if [[ -n $2 ]]; then grep -qE "$2" "$scratch/stdout" "$scratch/stderr"; else [[ ! -s $scratch/stdout ]]; fi
}
readonly kRight='int twice(int x) { return 2 * x; }'
readonly kWrong='#include <string>
bool f(std::string s) { return s.size() == 3; }'
passes() { small_tree drivers "$kRight" && says 0 ''; }
names_the_mistake() { small_tree libvipl "$kWrong" && says 1 'libvipl/a.cpp:2:.*performance-unnecessary-value-param'; }
names_it_in_a_unity_build() { unity_tree "$kWrong" && says 1 'drivers/a.hpp:2:.*performance-unnecessary-value-param'; }
analyzes() {
  unity_tree 'inline int f(int x) { int* p = nullptr; return x == 0 ? *p : x; }' && says 0 '' &&
    says 1 'drivers/a.hpp:1:.*clang-analyzer-core.NullDereference' --analyze
}
notices_what_does_not_compile() { small_tree tools 'nonsense' && says 1 'a.cpp:1'; }
notices_that_there_are_none() { small_tree tests "$kRight" && says 1 'compiles no source'; }
notices_bad_checks() { small_tree drivers "$kRight" && echo 'Checks: [' >"$scratch/tree/.clang-tidy" && says 1 .; }

echo "TAP version 13"
"$tree/tools/check-tidy" "$scratch/none" >/dev/null 2>&1
if (($? == 77)); then
  skip "clang-tidy finds mistakes" "clang-tidy-14 is not installed"
  finish
fi
check "a right source passes" passes
check "a mistake is named" names_the_mistake
check "so is one in a header of a unity build" names_it_in_a_unity_build
check "--analyze finds what the checks do not" analyzes
check "a source that does not compile does not pass" notices_what_does_not_compile
check "nor a tree without a product source" notices_that_there_are_none
check "nor one whose .clang-tidy cannot be read" notices_bad_checks
finish
