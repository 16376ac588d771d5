#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The kernels of Debian's releases, each in a virtual machine: scripts/vm-test.sh says what runs
# there. Its results are printed as they are; the test named here is the machine as a whole.
# time limit: 800 s
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# boot KERNEL
boot() {
	local status=0

	need qemu-system-x86_64
	"$TESTS/../scripts/vm-test.sh" "$1" || status=$?
	equal "$status" 0 "exit status of vm-test.sh $1"
}

# Too old; refused by one line.
test_linux_5_10() {
	boot 5.10
}

# Locked down against reading its memory, which a walk through return probes does.
test_locked_down() {
	export VM_PARAMETERS="lsm=lockdown lockdown=confidentiality" VM_REFUSED="lockdown=confidentiality"
	boot 6.1
}

# The oldest that is supported: perf-event uprobes.
test_linux_6_1() {
	boot 6.1
}

# uprobe_multi, no sessions.
test_linux_6_12() {
	boot 6.12
}

e2e_main "$@"
