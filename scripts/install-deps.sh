#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Installs from the distribution (Debian 12 or 13) what heapbpf is built with; quick when all of
# it is there.
#   scripts/install-deps.sh         to build and run
#   scripts/install-deps.sh --dev   also what the tests and the checks use
#   scripts/install-deps.sh --bench as --dev, and what the bench compares heapbpf with
set -euo pipefail

packages=(
	bpftool
	clang
	g++
	gcc
	libbpf-dev
	libbz2-dev
	libcapstone-dev
	libdw-dev
	libelf-dev
	libiberty-dev
	liblzma-dev
	libprotobuf-c-dev
	make
	pkg-config
	protobuf-c-compiler
	protobuf-compiler
	uthash-dev
	zlib1g-dev
)
# Clients of profiles, programs to profile, and what the tests look with.
dev_packages=(
	bind9
	bind9-dnsutils
	binutils
	busybox-static
	clang-format
	cpio
	dwz
	file
	gdb
	golang-go
	google-perftools
	libc6-dbg
	libcap2-bin
	libjemalloc2
	libmimalloc-dev
	libtcmalloc-minimal4
	lld
	mandoc
	mariadb-client-core
	mariadb-server-core
	mold
	mount
	musl-tools
	nginx
	nodejs
	npm
	postgresql
	postgresql-contrib
	procps
	python3
	qemu-system-x86
	redis-server
	redis-tools
	rustc
	shellcheck
	sqlite3
	strace
	swi-prolog-nox
	util-linux
	xz-utils
)
# Peers of the bench. memleak is in libbpf-tools from Debian 13 on.
bench_packages=(
	bpftrace
	heaptrack
	libbpf-tools
	libgoogle-perftools4
	valgrind
	zstd
)

case ${1:-} in
"") ;;
--dev) packages+=("${dev_packages[@]}") ;;
--bench) packages+=("${dev_packages[@]}" "${bench_packages[@]}") ;;
*)
	echo "usage: $0 [--dev | --bench]" >&2
	exit 64
	;;
esac

# is_there PACKAGE: installed, or provided by something that is.
is_there() {
	dpkg-query -W -f='${db:Status-Status} ${Package} ${Provides}\n' 2>/dev/null |
		awk -v want="$1" '
			$1 == "installed" {
				for (i = 2; i <= NF; i++) {
					sub(/,$/, "", $i)
					if ($i == want)
						found = 1
				}
			}
			END { exit !found }'
}

missing=()
for package in "${packages[@]}"; do
	is_there "$package" || missing+=("$package")
done
((${#missing[@]})) || exit 0

if ((EUID != 0)); then
	echo "$0: not installed: ${missing[*]}; run it as root" >&2
	exit 2
fi

# The servers are for the tests to start; installing them must not.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
	trap 'rm -f "$policy"' EXIT
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
fi

export DEBIAN_FRONTEND=noninteractive
echo "installing: ${missing[*]}"
apt-get -q update
apt-get -q -y --no-install-recommends install "${missing[@]}"
