#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# On a machine with nothing but git: installs what is missing, builds, and runs every check and
# test. Run it as root.
set -euo pipefail
cd "$(dirname "$0")/.."

# Files made as root in somebody's checkout are his.
give_back() {
	if [[ -n ${SUDO_UID:-} && -d build ]]; then
		chown -R "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" build
	fi
}
trap give_back EXIT

export WERROR=-Werror
scripts/install-deps.sh --dev
make -s -j"$(nproc)"
scripts/lint.sh
# Beforehand, so that a slow download is no slow test.
scripts/vm-test.sh --fetch
make -s -j"$(nproc)" check
