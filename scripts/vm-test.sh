#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Boots other kernels in virtual machines, records known programs in them with build/heapbpf-static,
# and compares with what the programs counted. Prints "ok NAME", "not ok NAME" or
# "skip NAME: reason" lines as tests/run.sh knows them, complaints and figures on stderr; exit 1 if
# something failed, 2 if a machine could not be prepared.
#
#   scripts/vm-test.sh [KERNEL...]   KERNEL is the version of a Debian release (5.10, 6.1, 6.12; all
#                                    if none is given) or the path of a kernel image with what
#                                    is needed built in: serial console, devtmpfs, BTF
#   scripts/vm-test.sh --fetch       only downloads the kernels
#
# Debian's kernels come by apt from the mirror that this machine uses, once, into
# ${XDG_CACHE_HOME:-~/.cache}/heapbpf/vm; delete that to get newer ones. No root needed.
# The machine has one disk-less userland: busybox, the targets of tests/targets and their libraries,
# heapbpf. tests/vm/guest.sh runs in it and sends back the results for this script to judge.
#
# Environment: BUILD (build); JOBS, machines at a time (2); VM_TIMEOUT, seconds for one machine
# (600); ACCEL, how QEMU runs them (kvm if it works, else emulated); VM_PARAMETERS, more parameters
# for the kernels; VM_CASES, a regular expression: only cases whose line in list_cases() matches;
# VM_REFUSED, a regular expression: heapbpf must refuse to work there, with a line that it matches.
set -euo pipefail
cd "$(dirname "$0")/.."

BUILD=$(realpath -m "${BUILD:-build}")
JOBS=${JOBS:-2}
VM_TIMEOUT=${VM_TIMEOUT:-600}
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/heapbpf/vm
# shellcheck source=tests/vm/limits.sh
. tests/vm/limits.sh
# Without mitigations, since emulating them is dear.
PARAMETERS="console=ttyS0 quiet panic=-1 mitigations=off ${VM_PARAMETERS:-}"
RELEASES=(5.10 6.1 6.12)

# The Debian release whose kernel has that version.
declare -A SUITES=([5.10]=bullseye [6.1]=bookworm [6.12]=trixie)

export BUILD
work=$(mktemp -d "${TMPDIR:-/tmp}/heapbpf-vm.XXXXXX")
trap 'rm -rf "$work"' EXIT
failures=0

note() {
	echo "vm-test: $*" >&2
}

die() {
	note "$*"
	exit 2
}

# --- kernels ---------------------------------------------------------------------------------

# The mirror of Debian's main archive in this machine's own apt configuration.
debian_mirror() {
	apt-get indextargets --format "\$(ORIGIN)|\$(LABEL)|\$(REPO_URI)" "Created-By: Packages" |
		sed -n 's/^Debian|Debian|//p' | sort -u | head -n 1
}

# apt_private SUITE COMMAND...: apt with lists of its own; proxies and keys are the machine's.
apt_private() {
	local apt=$CACHE/apt/$1

	shift
	"$1" -q -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o "Dir::State=$apt/state" -o "Dir::Cache=$apt/cache" -o Acquire::Languages=none \
		-o APT::Sandbox::User=root "${@:2}"
}

# prepare_apt SUITE
prepare_apt() {
	local apt=$CACHE/apt/$1 mirror keys=/usr/share/keyrings/debian-archive-keyring.gpg

	mirror=$(debian_mirror)
	[[ -n $mirror ]] || die "apt knows no mirror of Debian; give the path of a kernel image"
	mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
	[[ -e $keys ]] && keys="[signed-by=$keys]" || keys=
	echo "deb $keys $mirror $1 main" >"$apt/sources.list"
	apt_private "$1" apt-get update >"$apt/log" 2>&1
}

# fetch_kernel VERSION: puts Debian's kernel of that version into the cache.
fetch_kernel() {
	local suite=${SUITES[$1]} package
	local apt=$CACHE/apt/$suite

	note "fetching the kernel of Debian $suite"
	prepare_apt "$suite" || die "cannot read the package lists of $suite: see $apt/log"
	package=$(apt_private "$suite" apt-cache show --no-all-versions linux-image-cloud-amd64 |
		sed -n 's/^Depends: \(linux-image-[^ ,]*\).*/\1/p')
	rm -f "$apt"/*.deb
	(cd "$apt" && apt_private "$suite" apt-get download "$package") >>"$apt/log" 2>&1 ||
		die "cannot download $package: see $apt/log"
	rm -rf "${apt:?}/boot"
	dpkg-deb --fsys-tarfile "$apt"/*.deb | tar -x -C "$apt" ./boot
	mv "$apt"/boot/vmlinuz-* "$CACHE/vmlinuz-$1"
	rm -rf "${apt:?}"/*.deb "${apt:?}/boot" "$apt/state" "$apt/cache"
}

# kernel_image KERNEL: prints the path of its image.
kernel_image() {
	if [[ $1 == */* ]]; then
		[[ -r $1 ]] || die "cannot read $1"
		echo "$1"
		return
	fi
	[[ -n ${SUITES[$1]:-} ]] || die "no Debian release has kernel $1; known are: ${RELEASES[*]}"
	mkdir -p "$CACHE"
	(
		flock 9
		[[ -e $CACHE/vmlinuz-$1 ]] || fetch_kernel "$1"
	) 9>"$CACHE/lock" || exit
	echo "$CACHE/vmlinuz-$1"
}

# --- the machine -----------------------------------------------------------------------------

# capabilities TIER: those that it needs, as setpriv takes them.
capabilities() {
	local needed=-all,+bpf,+perfmon,+sys_ptrace

	[[ $1 != perf ]] || needed+=,+sys_admin
	echo "$needed"
}

# "NAME KIND TIER TARGET OPTION..." for each case in the guest.
list_cases() {
	local tier target setting

	for tier in perf multi session; do
		for target in family family_cxx threads:2000 chain sandboxed; do
			echo "${target%:*}_$tier record $tier $target"
		done
		for target in family chain; do
			echo "${target}_${tier}_allocs record $tier $target -t allocs"
		done
		for target in wrap:jump wrap:count; do
			echo "${target/:/_}_$tier record $tier $target"
		done
		echo "everybody_$tier everybody $tier freeall"
		echo "libraries_$tier libraries $tier plugins:quick"
		echo "command_$tier command $tier begin"
		echo "killed_$tier killed $tier steady"
		echo "capable_$tier capable $tier family 4 $(capabilities "$tier")"
	done
	# Whatever the setting, they do not suffice for perf events.
	for setting in -1 2 4; do
		echo "incapable_$setting incapable perf family $setting $(capabilities multi)"
	done
	echo "no_such_process refused perf - -p 4194304"
	echo "static_and_stripped refused perf - -p 1"
}

# copy_program ROOT FILE DESTINATION: with the libraries that it needs, where it needs them.
copy_program() {
	cp "$2" "$1/$3"
	local library

	# It may need none.
	for library in $(ldd "$2" 2>/dev/null | grep -oE '/[^ ]+' || true); do
		[[ -e $1$library ]] || install -D -m 755 "$library" "$1$library"
	done
}

# Makes $work/initrd.
make_initrd() {
	local root=$work/root target

	mkdir -p "$root"/{bin,dev,proc,sys,targets,tmp}
	cp "$(command -v busybox)" "$root/bin/busybox"
	cp "$BUILD/heapbpf-static" "$root/bin/heapbpf"
	cp "$work/verified" "$root/bin/verified"
	# That of busybox cannot take capabilities away.
	copy_program "$root" "$(command -v setpriv)" bin
	for target in "$BUILD"/targets/*; do
		copy_program "$root" "$target" targets
	done
	install -m 755 tests/vm/guest.sh "$root/init"
	list_cases | grep -E "${VM_CASES:-.}" >"$root/cases"
	(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initrd"
}

# What runs inside, from one build at a time, as tests may run beside each other.
build() {
	(
		flock 9
		make -s BUILD="$BUILD" static >&2
		tests/targets/build.sh >&2
	) 9>"$BUILD/vm-test.lock"
	"${CC:-cc}" -O2 -Wall -Wextra -static -o "$work/verified" tests/vm/verified.c
}

# qemu ACCEL IMAGE PARAMETER...: the console goes to stdout.
qemu() {
	local accel=$1 image=$2

	shift 2
	timeout -k 5 "$VM_TIMEOUT" qemu-system-x86_64 -accel "$accel" -cpu max -smp 2 -m 1G \
		-nodefaults -no-user-config -display none -no-reboot -serial stdio "$@" \
		-kernel "$image" -initrd "$work/initrd" </dev/null
}

# The fastest way to run IMAGE that works: some machines have a /dev/kvm that does not.
choose_accel() {
	if [[ -n ${ACCEL:-} ]]; then
		echo "$ACCEL"
	elif [[ -w /dev/kvm ]] && VM_TIMEOUT=10 qemu kvm "$1" -append "$PARAMETERS heapbpf_probe" 2>/dev/null |
		grep -q '^booted'; then
		echo kvm
	else
		# One thread: with more, a CPU can meet an int3 that another one has just taken out of the
		# kernel's text, and the guest dies.
		echo "tcg,thread=single"
	fi
}

# run_machine INDEX IMAGE: leaves $work/INDEX.log and, if it went well, the results unpacked in
# $work/INDEX.
run_machine() {
	local at=$work/$1

	mkdir "$at"
	if ! qemu "$accel" "$2" -serial "file:$at.tar" -append "$PARAMETERS" \
		>"$at.log" 2>&1; then
		echo "the machine did not power off within $VM_TIMEOUT s" >>"$at.log"
		return 0
	fi
	tar -x -C "$at" -f "$at.tar" >>"$at.log" 2>&1 || rm -f "$at/release"
}

# --- the verdict -----------------------------------------------------------------------------

# result NAME STATUS
result() {
	if (($2 == 0)); then
		echo "ok $1"
	else
		echo "not ok $1"
		failures=$((failures + 1))
	fi
}

# at_least RELEASE MAJOR MINOR
at_least() {
	local major minor

	IFS=.- read -r major minor _ <<<"$1"
	((major > $2 || (major == $2 && minor >= $3)))
}

# expected TIER RELEASE: must this way to attach work?
expected() {
	[[ -z ${VM_REFUSED:-} ]] || return
	case $1 in
	session) at_least "$2" 6 13 ;;
	multi) at_least "$2" 6 11 ;;
	perf) at_least "$2" 6 1 ;;
	esac
}

# reader COMMAND ARG...: the independent reader of profiles.
reader() {
	/usr/bin/python3 tests/pprof_read.py "$@"
}

# complain WORD...: prints it; false.
complain() {
	echo "$*" >&2
	return 1
}

# refused_well DIR [REGEX]: one line, which says so, and the status of a failure.
refused_well() {
	[[ $(<"$1/status") == 2 ]] || complain "status is $(<"$1/status"), not 2" || return
	[[ $(wc -l <"$1/err") == 1 ]] || complain "not one line: $(<"$1/err")" || return
	grep -qE "^heapbpf: .*(${2:-})" "$1/err" || complain "does not say ${2:-}: $(<"$1/err")" ||
		return
	echo "refused: $(<"$1/err")" >&2
}

# The verifier's work is far from its limit of a million instructions.
verified_well() {
	local name count

	while read -r name count; do
		((count <= VERIFIED_MAX)) ||
			complain "$name: $count verified instructions; $VERIFIED_MAX are the limit" ||
			return
	done <"$1/insns"
}

# Every stack ends where a program or a thread starts; those of `chain` that are too deep say so.
stacks_well() {
	local stacks complete all

	if [[ $2 == chain* ]]; then
		stacks=$(reader stacks "$1/p.pb.gz") || return
		[[ $stacks =~ \ 1000\ chain_g\;chain_f\;main\;[^$'\n']*_start ]] ||
			complain "the stack of chain_g is not complete" || return
		[[ $stacks =~ (descend\;){127,128}\[truncated\] ]] ||
			complain "the deep stack is not marked" || return
		return
	fi
	read -r complete _ all _ < <(reader comments "$1/p.pb.gz" | grep ' stacks complete$') ||
		complain "does not count complete stacks" || return
	((complete == all && all > 0)) || complain "$complete of $all stacks are complete"
}

# recorded_well DIR NAME: the profile is what the target counted, no more.
recorded_well() {
	local only=--only

	# What is in a stack cut short has its site beyond.
	[[ $2 == chain* ]] && only=
	[[ $(<"$1/status") == 0 ]] || complain "status $(<"$1/status"): $(<"$1/err")" || return
	[[ $(<"$1/target") == 0 ]] || complain "the target ended with $(<"$1/target")" || return
	reader valid "$1/p.pb.gz" >&2 || return
	reader compare ${only:+"$only"} "$1/truth" "$1/p.pb.gz" >&2 || return
	stacks_well "$1" "$2" || return
	verified_well "$1"
}

# Each of two libraries that were at one address has its own blocks, told by their sizes.
libraries_well() {
	local size name

	[[ $(<"$1/status") == 0 ]] || complain "status $(<"$1/status"): $(<"$1/err")" || return
	[[ $(<"$1/target") == 0 ]] || complain "the target ended with $(<"$1/target")" || return
	grep -qx 'PLACE same' "$1/truth" || complain "the libraries were at two addresses" || return
	reader valid "$1/p.pb.gz" >&2 || return
	reader stacks "$1/p.pb.gz" >"$1/stacks" || return
	while read -r size name; do
		[[ $(awk -v size="$size" '$5 == size { sum += $1 } END { print sum }' "$1/stacks") == 1000 ]] ||
			complain "not 1000 blocks of $size bytes" || return
		! grep -qE "^([0-9]+ ){4}$size .*$name" "$1/stacks" ||
			complain "blocks of $size bytes under the name of $name" || return
	done <<-END
		1001 plugin_b
		1002 plugin_a
		1003 plugin_a
	END
}

# Nothing is missing from the first constructor on, in any image, and each stack is whole.
command_well() {
	[[ $(<"$1/status") == 0 ]] || complain "status $(<"$1/status"): $(<"$1/err")" || return
	awk '$1 == "SITE" { for (i = 3; i <= 6; i++) sum[$2, i] += $i; names[$2] }
		END { for (n in names) print "SITE", n, sum[n, 3], sum[n, 4], sum[n, 5], sum[n, 6] }' \
		"$1/truth" >"$1/sums"
	grep -q site_last "$1/sums" || complain "the program did not come to its end" || return
	reader valid "$1/p.pb.gz" >&2 || return
	reader compare "$1/sums" "$1/p.pb.gz" >&2 || return
	stacks_well "$1" begin
}

# Who is met by its first call is counted from that on; its stacks are whole once its mappings are read.
everybody_well() {
	local field=3 type sum

	[[ $(<"$1/status") == 0 ]] || complain "status $(<"$1/status"): $(<"$1/err")" || return
	[[ $(<"$1/target") == 0 ]] || complain "the target ended with $(<"$1/target")" || return
	reader valid "$1/p.pb.gz" >&2 || return
	for type in alloc_objects alloc_space inuse_objects inuse_space; do
		sum=$(awk -v f=$field '$1 == "SITE" { sum += $f } END { print sum }' "$1/truth")
		[[ $(reader total "$1/p.pb.gz" "$type") == "$sum" ]] || complain "$type is not $sum" || return
		field=$((field + 1))
	done
	verified_well "$1"
}

# The target never knew.
killed_well() {
	[[ $(<"$1/status") == 137 ]] || complain "status $(<"$1/status"): $(<"$1/err")" || return
	[[ $(<"$1/target") == 0 ]] || complain "the target ended with $(<"$1/target")"
}

# Two lines, of the recording and of check, say what is missing.
incapable_well() {
	refused_well "$1" 'perf uprobes.* without CAP_SYS_ADMIN' || return
	grep -q ' without CAP_SYS_ADMIN' "$1/answer" || complain "check says: $(<"$1/answer")"
}

# judge_case KERNEL DIR NAME KIND: of a kernel that has what the case needs.
judge_case() {
	local status=0

	if [[ ! -s $2/$3/status ]]; then
		complain "no result" || status=1
	elif [[ $4 == refused ]]; then
		refused_well "$2/$3" || status=1
	elif [[ $4 == incapable ]]; then
		incapable_well "$2/$3" || status=1
	elif [[ $4 == killed ]]; then
		killed_well "$2/$3" || status=1
	elif [[ $4 == everybody ]]; then
		everybody_well "$2/$3" || status=1
	elif [[ $4 == command ]]; then
		command_well "$2/$3" || status=1
	elif [[ $4 == libraries ]]; then
		libraries_well "$2/$3" || status=1
	else
		recorded_well "$2/$3" "$3" || status=1
	fi
	result "$1/$3" "$status"
}

# The largest number of verified instructions for each program.
show_verified() {
	local name count

	while read -r name count; do
		note "$1: $name: $count verified instructions"
	done < <(cat "$2"/*/insns 2>/dev/null | sort -k1,1 -k2,2nr | awk '!seen[$1]++')
}

# judge KERNEL INDEX
judge() {
	local at=$work/$2 release name kind tier status
	local -A settled=()

	if [[ ! -s $at/release ]]; then
		tail -n 40 "$at.log" >&2
		result "$1/boot" 1
		return
	fi
	release=$(<"$at/release")
	note "$1: $(tr -d '\r' <"$at.log" | grep -a '^booted' || true), $accel"
	while read -r name kind tier _; do
		if expected "$tier" "$release"; then
			judge_case "$1" "$at" "$name" "$kind"
		elif [[ -z ${settled[$tier]:-} ]]; then
			settled[$tier]=1
			status=0
			refused_well "$at/$name" "${VM_REFUSED:-no $tier uprobes|needs 6\.1 or newer}" ||
				status=1
			result "$1/no_$tier" "$status"
		fi
	done <"$work/root/cases"
	show_verified "$1" "$at"
}

# --- all of it -------------------------------------------------------------------------------

kernels=("$@")
[[ ${1:-} == --fetch ]] && kernels=()
((${#kernels[@]})) || kernels=("${RELEASES[@]}")

images=()
for kernel in "${kernels[@]}"; do
	image=$(kernel_image "$kernel")
	images+=("$image")
done
[[ ${1:-} == --fetch ]] && exit 0

for command in qemu-system-x86_64 busybox cpio setpriv; do
	command -v "$command" >/dev/null || die "$command is not installed"
done
build
make_initrd
accel=$(choose_accel "${images[0]}")
for index in "${!images[@]}"; do
	while (($(jobs -pr | wc -l) >= JOBS)); do
		wait -n
	done
	run_machine "$index" "${images[$index]}" &
done
wait
for index in "${!images[@]}"; do
	judge "${kernels[$index]##*/}" "$index"
done
((failures == 0))
