# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What holds on every kernel, in a machine of our own or not; for tests/e2e and scripts/vm-test.sh.

# Instructions that the verifier may look at for one program; its own limit is a million.
# shellcheck disable=SC2034
VERIFIED_MAX=200000
