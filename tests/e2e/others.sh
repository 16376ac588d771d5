#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Allocators other than the C library's, at -r 1 exact as that is; and what throws lives on.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

mounted=
events=heapbpf_test_$$

teardown() {
	[[ -n $mounted ]] || return 0
	if [[ -e $mounted/events/$events ]]; then
		echo 0 >"$mounted/events/$events/enable"
		sed -n "s|^p:\\($events/[^ ]*\\).*|-:\\1|p" "$mounted/uprobe_events" |
			while read -r event; do
				echo "$event" >>"$mounted/uprobe_events"
			done
	fi
	umount -l "$mounted"
}

# find_library NAME: the path of an allocator goes to `library`, empty for the C library's own.
library=
find_library() {
	local path

	library=
	case $1 in
	glibc) return ;;
	jemalloc) path=libjemalloc.so.2 ;;
	tcmalloc) path=libtcmalloc_minimal.so.4 ;;
	mimalloc) path=libmimalloc.so.2 ;;
	esac
	library=$(ldconfig -p | sed -n "s|.*$path .* => ||p" | head -n 1)
	[[ -n $library ]] || skip "$path is not installed"
}

# with NAME TARGET [ARG...]: starts the target with that allocator.
with() {
	find_library "$1"
	target_exec env LD_PRELOAD="$library" "$TARGETS/$2" "${@:3}"
}

# check TIER ALLOCATOR TARGET [ARG...]: at -r 1, with $options.
options=()
check() {
	need_tier "$1"
	with "${@:2}"
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz --tier "$1" "${options[@]}"
	target_step
	heapbpf_stop
	whole
	exact
	target_end
}

# cxx TIER ALLOCATOR: every form of operator new and delete. Debian's mimalloc is written in C and
# cannot throw.
cxx() {
	if [[ $2 == mimalloc ]]; then
		check "$@" family_cxx calm
	else
		check "$@" family_cxx
	fi
}

cxx_allocs() {
	options=(-t allocs)
	cxx "$@"
	! grep -q inuse <(reader types p.pb.gz) || fail "there is more than allocs"
}

# bad_alloc ALLOCATOR TIER RATE: large objects are all sampled at the default rate, too.
bad_alloc() {
	need_tier "$2"
	# It must do that without us.
	find_library "$1"
	LD_PRELOAD=$library "$TARGETS/bad_alloc" <<<gg >/dev/null 2>&1 ||
		skip "operator new of this $1 does not throw"
	with "$1" bad_alloc
	heapbpf_start -p "$target_pid" -r "$3" --max-overhead none -o p.pb.gz --tier "$2"
	target_step
	heapbpf_stop
	whole
	exact
	target_end
}

for tier in session multi perf; do
	for name in jemalloc tcmalloc mimalloc; do
		eval "test_cxx_${name}_$tier() { cxx $tier $name; }"
		eval "test_plain_${name}_$tier() { check $tier $name plain; }"
		eval "test_bad_alloc_${name}_$tier() { bad_alloc $name $tier 1; }"
		eval "test_bad_alloc_${name}_${tier}_sampled() { bad_alloc $name $tier 512K; }"
	done
	eval "test_bad_alloc_glibc_$tier() { bad_alloc glibc $tier 1; }"
	eval "test_family_x_$tier() { check $tier jemalloc family_x; }"
done

for name in jemalloc tcmalloc mimalloc; do
	eval "test_cxx_${name}_allocs() { cxx_allocs session $name; }"
	eval "test_plain_${name}_allocs() { options=(-t allocs); check session $name plain; }"
	eval "test_threads_$name() { check session $name threads; }"
done

for name in tcmalloc mimalloc; do
	for tier in session multi perf; do
		eval "test_prefix_${name}_$tier() { check $tier $name family_prefix; }"
	done
	eval "test_prefix_${name}_allocs() { options=(-t allocs); check session $name family_prefix; }"
done

test_bad_alloc_glibc_sampled() {
	bad_alloc glibc session 512K
}

# Each stops at the breakpoints of the other; neither's return addresses may be replaced for that.
bad_alloc_two_at_once() {
	local first first_in first_out first_heapbpf

	need_tier "$2"
	with "$1" bad_alloc
	first=$target_pid first_in=$target_in first_out=$target_out
	with "$1" bad_alloc
	heapbpf_start -p "$first" -r 1 -o first.pb.gz --tier "$2"
	first_heapbpf=$heapbpf_pid
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz --tier session
	target_step
	mv truth truth.second
	target_in=$first_in target_out=$first_out target_step
	heapbpf_stop
	whole
	target_end
	target_pid=$first target_in=$first_in heapbpf_pid=$first_heapbpf
	heapbpf_stop
	whole
	target_end
	reader compare truth first.pb.gz
	reader compare truth.second p.pb.gz
}

for name in jemalloc tcmalloc; do
	for tier in session multi perf; do
		eval "test_bad_alloc_two_at_once_${name}_$tier() { bad_alloc_two_at_once $name $tier; }"
	done
done

test_family_x_allocs() {
	options=(-t allocs)
	check session jemalloc family_x
}

test_own_prefix() {
	options=(--symbol-prefix "other_,mine_")
	check session glibc own_prefix
	options=(--symbol-prefix other_ --symbol-prefix mine_)
	check session glibc own_prefix
}

# Without the option its names mean nothing, and the rest is as it was.
test_own_prefix_unknown() {
	record own_prefix
	sed -i 's/^SITE site_mine .*/SITE site_mine 0 0 0 0/' truth
	exact
	target_end
}

# The libraries' operator new stays without a return probe; what its end costs is said.
test_check_shows_where_results_are_taken() {
	with jemalloc family_cxx
	heapbpf_run check -p "$target_pid"
	says '^    _Znwm .* ja .*emulated$' cat out
	says '^    _Znam .* not probed: it jumps to operator new$' cat out
	says '^    _ZnwmSt11align_val_t .* not probed: it calls one that is$' cat out
	says '^    mallocx .*emulated$' cat out
	says '^    return of new .* ret .* single-stepped \(slow\)$' cat out
	heapbpf_run check -t allocs -p "$target_pid"
	! grep -q 'return of new' out || fail "results are not needed for allocs"
}

# What cannot be followed to its end is counted and said to be missing from what is in use.
test_end_unknown() {
	target own_new
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	target_step
	heapbpf_stop
	equal "$heapbpf_status" 1 "exit status"
	exact
	says '^lost: 10 no_result' cat out
	heapbpf_run check -p "$target_pid"
	says '^    _Znwm .*, not in inuse: its returns cannot be found$' cat out
	target_end
}

test_end_unknown_allocs() {
	options=(-t allocs)
	check session glibc own_new
}

# --- allocators made of another one -------------------------------------------------------------

# wrapped TIER NAME: as if the wrapper were not there.
wrapped() {
	need_tier "$1"
	target wrap "$2"
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz --tier "$1" "${options[@]}"
	target_step
	heapbpf_stop
	whole
	exact_if --only
	# What is freed inside was taken out before; one block is older than the profile.
	((${#options[@]})) ||
		says 'frees of objects not sampled or older than the profile = 1,' reader comments p.pb.gz
	target_end
}

wrapped_allocs() {
	options=(-t allocs)
	wrapped session "$1"
}

# From the start on, where its pointers are not known yet.
wrapped_command() {
	heapbpf_status=0
	"$HEAPBPF" -r 1 -o p.pb.gz -- env LD_PRELOAD="$TARGETS/wrap_$1.so" "$TARGETS/wrap" \
		<<<gg >told 2>err || heapbpf_status=$?
	whole
	grep '^SITE' told >truth
	exact
}

# Each call is drawn for once.
wrapped_sampled() {
	target_exec env LD_PRELOAD="$TARGETS/wrap_$1.so" "$TARGETS/mix" 32 64:10000:5000 \
		4096:20000:1000 65536:2000:1000
	heapbpf_start --max-overhead none -p "$target_pid" -r 64K -o p.pb.gz
	target_step
	heapbpf_stop
	whole
	reader valid p.pb.gz
	reader estimates truth p.pb.gz >e
	awk '$7 <= 1e-8 || $8 * $8 >= 49' e >off
	equal "$(<off)" "" "estimates that are off"
	equal "$(lines e)" 12 "estimates"
}

for name in jump jump_got plt count header; do
	for tier in session multi perf; do
		eval "test_wrapped_${name}_$tier() { wrapped $tier $name; }"
	done
	eval "test_wrapped_${name}_allocs() { wrapped_allocs $name; }"
	eval "test_wrapped_${name}_command() { wrapped_command $name; }"
	eval "test_wrapped_${name}_sampled() { wrapped_sampled $name; }"
done

# --- functions named by hand -------------------------------------------------------------------

FAMILY=(malloc calloc realloc reallocarray posix_memalign memalign valloc pvalloc free)

# hide PROGRAM: it loses its symbols to a file beside it, which gives the profile its names.
hide() {
	need strip objcopy nm readelf
	cp "$1" "$1.shown"
	objcopy --only-keep-debug "$1" "$1.debug"
	strip "$1"
	objcopy --add-gnu-debuglink="$1.debug" "$1"
}

# The process of ./family: static, without symbols.
hidden_family() {
	need cc
	cc -O2 -g -static -fno-builtin -w -o family "$TESTS/targets/family.c" 2>messages
	hide family
	target_exec ./family
}

# offset_in PROGRAM SYMBOL: where in the file the function is.
offset_in() {
	{ nm "$1" && nm -D "$1"; } 2>/dev/null |
		awk -v name="$2" '$3 ~ "^" name "(@@.*)?$" { print "symbol 0x" $1 }' >place
	readelf -lW "$1" | awk '$1 == "LOAD" { print $1, $2, $3, $5 }' >>place
	local kind first second third vma=

	while read -r kind first second third; do
		case $kind in
		symbol) vma=$((first)) ;;
		LOAD) ((vma >= second && vma < second + third)) &&
			printf '0x%x' $((vma - second + first)) && return ;;
		esac
	done <place
	fail "no $2 in $1"
}

# hand PROGRAM FUNCTION[=SYMBOL]...: `options` become a --probe for each, by its offset.
hand() {
	local program=$1 pair

	shift
	options=()
	for pair; do
		options+=(--probe
			"${pair%=*}=$PWD/$program:$(offset_in "$program.shown" "${pair#*=}")")
	done
}

# by_hand OPTION...: exact with $options.
by_hand() {
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz "${options[@]}" "$@"
	target_step
	heapbpf_stop
	whole
	exact
	target_end
}

FAMILY=(malloc calloc realloc reallocarray posix_memalign memalign valloc pvalloc free)

by_offset() {
	need_tier "$1"
	hidden_family
	hand family "${FAMILY[@]}"
	by_hand --tier "$1"
}

for tier in session multi perf; do
	eval "test_by_offset_$tier() { by_offset $tier; }"
done

test_by_offset_allocs() {
	hidden_family
	hand family "${FAMILY[@]}"
	by_hand -t allocs
}

# The program itself has no symbol; its debug file has.
test_by_symbol_of_a_debug_file() {
	local name

	hidden_family
	options=()
	for name in "${FAMILY[@]}"; do
		options+=(--probe "$name=$PWD/family:$name")
	done
	by_hand
}

test_static_without_symbols_says_what_to_do() {
	hidden_family
	heapbpf_run -p "$target_pid" -r 1
	equal "$heapbpf_status $(lines err)" "2 1" "status and lines on stderr"
	matches "$(<err)" "--probe malloc=$PWD/family:0xOFFSET" "stderr"
}

# Where somebody has a breakpoint, in all mappings of the file and so in ours, the code counts.
test_breakpoints_of_others() {
	local libc name

	mkdir tracing
	mount -t tracefs none tracing 2>/dev/null || skip "this kernel has no tracefs"
	mounted=$PWD/tracing
	[[ -e tracing/uprobe_events ]] || skip "this kernel has no events on uprobes"
	libc=$(ldd "$TARGETS/family" | awk '$1 ~ /^libc\.so/ { print $3 }')
	cp "$libc" libc.so.6
	target_exec env LD_LIBRARY_PATH="$PWD" "$TARGETS/family"
	for name in malloc realloc memalign; do
		echo "p:$events/$name $PWD/libc.so.6:$(offset_in libc.so.6 "$name")" \
			>>tracing/uprobe_events
	done
	echo 1 >"tracing/events/$events/enable"
	! text_intact "$target_pid" || fail "there are no breakpoints"
	options=(-t allocs)
	by_hand
}

POOL=(malloc=pool_get calloc=pool_table realloc=pool_resize free=pool_put)

# pool_options PROGRAM: `options` name the functions of own_names by their symbols.
pool_options() {
	local pair

	options=()
	for pair in "${POOL[@]}"; do
		options+=(--probe "${pair%=*}=$1:${pair#*=}")
	done
}

names_of_no_meaning() {
	need_tier "$1"
	target own_names
	pool_options "$TARGETS/own_names"
	by_hand --tier "$1"
}

for tier in session multi perf; do
	eval "test_names_of_no_meaning_$tier() { names_of_no_meaning $tier; }"
done

# Of a stripped program, its path given as in a shell.
test_names_of_no_meaning_by_offset() {
	cp "$TARGETS/own_names" .
	hide own_names
	target_exec ./own_names
	hand own_names "${POOL[@]}"
	options=("${options[@]//"$PWD/"/}")
	by_hand
}

# A program that is started, by one that does not map the file.
test_names_of_no_meaning_command() {
	pool_options "$TARGETS/own_names"
	heapbpf_status=0
	env "$HEAPBPF" -r 1 -o p.pb.gz "${options[@]}" -- env A=b "$TARGETS/own_names" \
		<<<gg >told 2>err || heapbpf_status=$?
	whole
	grep '^SITE' told >truth
	exact
}

test_hand_in_no_file_of_a_command() {
	heapbpf_run -o p.pb.gz --probe malloc=/etc/passwd:x -- true
	equal "$heapbpf_status" 1 "status"
	says 'malloc=/etc/passwd:x: no process .* maps that file' cat err
}

test_check_shows_what_was_given() {
	target own_names
	pool_options "$TARGETS/own_names"
	heapbpf_run check -p "$target_pid" "${options[@]}"
	equal "$heapbpf_status" 0 "status"
	says '^    pool_get .*, as malloc$' cat out
	says '^    pool_put .*, as free$' cat out
	# Those of libc are there as well.
	says '^    malloc .*emulated$' cat out
}

# refused_hand REGEX OPTION...: record and check say it in one line.
refused_hand() {
	local regex=$1 verb

	shift
	for verb in record check; do
		heapbpf_run "$verb" -p "$target_pid" "$@"
		equal "$heapbpf_status $(lines err)" "2 1" "status and lines on stderr: $(<err)"
		matches "$(<err)" "$regex" "stderr of $*"
	done
}

test_hand_is_checked() {
	local program=$TARGETS/own_names off

	target own_names
	off=$(offset_in "$program" pool_get)
	refused_hand 'no process .* maps that file' --probe malloc=/etc/passwd:x
	refused_hand 'no function pool_gte' --probe "malloc=$program:pool_gte"
	refused_hand 'no code at that offset' --probe "malloc=$program:0x10"
	refused_hand 'no code at that offset' --probe "malloc=$program:0xffffff00"
	refused_hand "inside of a function, which begins at $off" \
		--probe "malloc=$program:$(printf '0x%x' $((off + 1)))"
	refused_hand 'says something else' --probe "malloc=$program:$off" \
		--probe "free=$program:$off"
	refused_hand 'none that frees' --probe "malloc=$program:pool_get"
	heapbpf_run check -t allocs -p "$target_pid" --probe "malloc=$program:pool_get"
	equal "$heapbpf_status" 0 "without frees, for allocs"
}

test_several_functions_of_one_name() {
	need cc
	cat >first.c <<-end
		__attribute__((noipa)) static void *get(int n) { static char c[99]; return c + n; }
		void *first(int n) { return (char *)get(n) + 1; }
	end
	cat >second.c <<-end
		#include <unistd.h>
		__attribute__((noipa)) static void *get(int n) { static char c[98]; return c + n; }
		void *first(int n);
		int main(int argc, char **argv)
		{
			(void)!write(1, "READY\n", 6);
			(void)!read(0, argv, 1);
			return first(argc) == get(argc);
		}
	end
	cc -O2 -o twice first.c second.c
	target_exec ./twice
	refused_hand 'several functions get, at 0x[0-9a-f]+ and 0x[0-9a-f]+' --probe "malloc=$PWD/twice:get"
}

# --- one file to look into ---------------------------------------------------------------------

# The library's own file is looked into, whatever is in it; libc's malloc is not.
test_alloc_lib() {
	find_library jemalloc
	with jemalloc family_cxx
	options=(--alloc-lib "$library")
	by_hand
	with jemalloc family_cxx
	heapbpf_run check -p "$target_pid" --alloc-lib "$library"
	equal "$(grep -c '^  /' out)" "$(grep -c '^  .*\(jemalloc\|/ld-linux\)' out)" "files"
}

# Some of the names only.
test_alloc_lib_in_part() {
	need cc
	cat >part.c <<-end
		#include <stddef.h>
		static char arena[1 << 20], *at = arena;
		void *calloc(size_t n, size_t m) { void *p = at; at += n * m; return p; }
		void cfree(void *p) { __asm__ volatile("" : : "r"(p) : "memory"); }
	end
	cc -O2 -shared -fPIC -fno-builtin -o part.so part.c
	cat >user.c <<-end
		#include "$TESTS/targets/truth.h"
		void cfree(void *p);
		SITE(site_part)
		{
			took(self, calloc(3, 100), 300);
			cfree(took(self, calloc(3, 200), 600));
			gave(self, 600);
		}
		SITE(site_libc)
		{
			TRUTH_KEEP(self);
			free(malloc(100));
		}
		int main(void)
		{
			await("READY");
			RUN(site_part);
			RUN(site_libc);
			finish();
		}
	end
	cc -O2 -fno-builtin -o user user.c "$PWD/part.so"
	target_exec ./user
	options=(--alloc-lib "$PWD/part.so")
	by_hand
	target_exec ./user
	refused_hand 'does not map that file' --alloc-lib /etc/passwd
	refused_hand "none of the names" --alloc-lib "$PWD/user"
}

e2e_main "$@"
