#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# From a fresh clone to a first profile: installs what is missing, builds, starts a small C++
# service that leaks, and profiles it for a few seconds. Run it as root: sudo ./scripts/demo.sh
set -euo pipefail
cd "$(dirname "$0")/.."

build=build
demo=$build/demo
service=0

if ((EUID != 0)); then
	echo "the demo installs packages and loads BPF programs: sudo $0" >&2
	exit 2
fi

finish() {
	if ((service)); then
		kill "$service" 2>/dev/null || true
		wait "$service" 2>/dev/null || true
	fi
	# Files made as root in somebody's checkout are his.
	if [[ -n ${SUDO_UID:-} && -d $build ]]; then
		chown -R "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$build"
	fi
}
trap finish EXIT

# Says what happens next, and does it.
step() {
	printf '\n\033[1m$ %s\033[0m\n' "$*"
	"$@"
}

step scripts/install-deps.sh
step make -s -j"$(nproc)"

mkdir -p "$demo"
source=tests/targets/leaky.cc
step c++ -std=c++17 -O2 -g -o "$demo/leaky" "$source"
exec {said}< <(exec "$demo/leaky")
service=$!
# Until its first line, the process may still be this script.
read -r -u "$said"
printf '\nA little web service runs as process %d (%s). It grows. Where?\n' "$service" "$source"

step "$build/heapbpf" -p "$service" -d 10s -o "$demo/"

profile=$demo/heapbpf.leaky.$service.pb.gz
printf '\nThe profile:\n'
ls -l "$profile"
cat <<-END

	PageCache::get and what it renders hold nearly all that is in use: its key holds a number
	that is new for each request, so nothing is ever found in the cache and nothing ever leaves.
	The headers that parse_request allocates come and go: allocated, but not in use.

	Next, the same with source lines and call graph in a browser:
	    go tool pprof -http=localhost:8080 $profile
	or on the terminal:
	    go tool pprof -top -cum $profile
	and on a process of your own:
	    sudo $build/heapbpf -p PID -d 30s
END
