#!/bin/bash
# Runs the tests that need two hosts, and prints what GoogleTest says.
#   two_hosts.sh VIADUCT-VM PROGRAMS
set -u -o pipefail
export LC_ALL=C
if [[ -n ${VIADUCT_VM_HOST-} ]]; then  # in a guest
  shift
  if [[ $VIADUCT_VM_HOST == 1 ]]; then
    exec "$1" --gtest_filter='TwoHosts.*'
  fi
  until "$1" --part far rxe2; do :; done  # it is killed on the way
  exit 0
fi
"$1" --hosts 2 --timeout 750 "${BASH_SOURCE[0]}" "$@" | sed 's/^host1: //'
