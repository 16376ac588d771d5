#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What other programs make of the files: they read them, see the same numbers as our own reader,
# and need not look for names.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

export PPROF_TMPDIR=/nonexistent HOME=/nonexistent GOFLAGS='' GOTOOLCHAIN=local

# truth_of FUNCTION COLUMN (1 alloc_objects .. 4 inuse_space)
truth_of() {
	awk -v f="$1" -v c="$2" '$1 == "SITE" && $2 == f { print $(c + 2) }' truth
}

# The cumulative number of FUNCTION in a pprof table read from stdin: units off, "0" if absent.
cum_of() {
	awk -v f="$1" '$6 == f { gsub(/[^0-9.]/, "", $4); found = $4 } END { print found + 0 }'
}

# same_as_truth INDEX COLUMN TABLE-FILE: every site that is not left open.
same_as_truth() {
	local site want checked=0

	while read -r _ site _; do
		want=$(truth_of "$site" "$2")
		[[ $want == - ]] && continue
		equal "$(cum_of "$site" <"$3")" "$want" "$1 of $site"
		checked=$((checked + 1))
	done < <(grep '^SITE' truth)
	((checked > 0))
}

# recorded TARGET ARG...: `truth`, `p.pb.gz` and `p.txt` of the same program's work.
recorded() {
	local name=$1

	shift
	record "$name" "$@"
	target_end
	mv truth truth.pb
	target "$name"
	heapbpf_start -p "$target_pid" -r 1 --text -o p.txt "$@"
	target_step
	heapbpf_stop
	whole
	cmp truth truth.pb
}

test_go_top() {
	local index column=0

	go_command >/dev/null
	record family
	for index in alloc_objects alloc_space inuse_objects inuse_space; do
		column=$((column + 1))
		go_pprof -top -cum -unit=B -nodecount=10000 -nodefraction=0 -sample_index="$index" \
			p.pb.gz >table 2>messages
		same_as_truth "$index" "$column" table
		matches "$(<table)" "Type: $index" "header"
	done
	says '^Type: inuse_space' go_pprof -top p.pb.gz 2>/dev/null
}

test_go_options_of_old() {
	local option

	record family
	for option in -inuse_space -inuse_objects -alloc_space -alloc_objects; do
		says "^Type: ${option#-}" go_pprof -top "$option" p.pb.gz 2>/dev/null
	done
}

test_go_allocs() {
	record family -t allocs
	says '^Type: alloc_space' go_pprof -top p.pb.gz 2>/dev/null
	go_pprof -top -cum -unit=B -nodecount=10000 -nodefraction=0 -sample_index=alloc_space \
		p.pb.gz >table 2>/dev/null
	same_as_truth alloc_space 2 table
}

# Flat values belong to who asked, not to the allocator: drop_frames at work.
test_go_flat() {
	record family_cxx
	go_pprof -top -unit=B -nodecount=10000 -nodefraction=0 -sample_index=alloc_space \
		p.pb.gz >table 2>/dev/null
	equal "$(awk '$6 == "site_new" { print $1 }' table)" 100000B "flat bytes of site_new"
	if grep -E ' (operator new|operator new\[\]|malloc|calloc|realloc)(\(|$)' table; then
		fail "allocator functions in the table"
	fi
}

test_go_traces_and_tree() {
	record chain
	matches "$(go_pprof -traces -sample_index=alloc_objects p.pb.gz 2>/dev/null)" \
		$'bytes:[^\n]*\n[^\n]*7 +chain_g\n +chain_f\n +main\n' "traces"
	matches "$(go_pprof -tree p.pb.gz 2>/dev/null)" 'chain_f' "tree"
	says '^digraph' go_pprof -dot p.pb.gz 2>/dev/null
}

# Every location has a mapping with its file, and every mapping says that names are there.
test_go_raw() {
	record family
	go_pprof -raw p.pb.gz >raw 2>/dev/null
	matches "$(<raw)" 'PeriodType: space bytes' "raw"
	matches "$(<raw)" 'Period: 1' "raw"
	if sed -n '/^Locations/,/^Mappings/p' raw | grep -E '^ +[0-9]+: 0x[0-9a-f]+ M=0'; then
		fail "locations without a mapping"
	fi
	sed -n '/^Mappings/,$p' raw | tail -n +2 | grep -v '^$' >mappings
	if grep -vE '\[FN\]' mappings; then
		fail "mappings without the mark of names"
	fi
	matches "$(grep "$TARGETS/family" mappings)" ' [0-9a-f]{40} \[FN\]\[FL\]\[LN\]\[IN\]' "own file"
}

# Nothing is opened beside the profile: no second symbolization.
test_go_believes_the_names() {
	need strace
	record family
	strace -f -e trace=openat,execve -o opened "$(go_command)" tool pprof -top p.pb.gz \
		>/dev/null 2>messages
	if grep -v ENOENT opened | grep -E "\"$TARGETS/family|addr2line|/nm\"|objdump"; then
		fail "pprof looked for names"
	fi
}

test_go_diff() {
	local diff

	record freeall
	mv p.pb.gz base.pb.gz
	target_end
	record freeall
	diff=$(go_pprof -top -sample_index=alloc_space -diff_base base.pb.gz p.pb.gz 2>/dev/null)
	matches "$diff" 'accounting for 0( |$|,)' "difference of equals"
	mv p.pb.gz same.pb.gz
	record family
	diff=$(go_pprof -top -unit=B -nodecount=10000 -nodefraction=0 -sample_index=alloc_space \
		-diff_base same.pb.gz p.pb.gz 2>/dev/null)
	equal "$(awk '$6 == "site_freed" { print $1 }' <<<"$diff")" -37507500B "gone site"
}

# merging two profiles of one process adds up
test_go_merge() {
	record freeall
	equal "$(go_pprof -top -unit=B -sample_index=alloc_space p.pb.gz p.pb.gz 2>/dev/null |
		awk '$6 == "site_freed" { print $1 }')" 75015000B "twice the same"
}

test_go_reads_text() {
	local index column=0

	recorded family
	for index in alloc_objects alloc_space inuse_objects inuse_space; do
		column=$((column + 1))
		go_pprof -top -cum -unit=B -nodecount=10000 -nodefraction=0 -symbolize=local \
			-sample_index="$index" p.txt >table 2>messages
		same_as_truth "$index" "$column" table
	done
}

test_google_pprof_reads_text() {
	local option column=0

	need google-pprof
	recorded family
	for option in --alloc_objects --alloc_space --inuse_objects --inuse_space; do
		column=$((column + 1))
		google-pprof --text --show_bytes "$option" "$TARGETS/family" p.txt >table 2>messages
		same_as_truth "${option#--}" "$column" table
	done
}

# Sampled, the text form carries what was seen and its readers scale it: as we did, but for the
# resolution of our table. Each has samples of its own; six standard errors of the difference are 8 %.
test_text_scales_alike() {
	local ours theirs

	target mix 1 1048576:2000:1000 65536:10000:1000
	heapbpf_start --max-overhead none -p "$target_pid" -t heap -o p.pb.gz
	heapbpf_second=$heapbpf_pid
	heapbpf_start --max-overhead none -p "$target_pid" --text -o p.txt
	target_step
	heapbpf_stop
	whole
	heapbpf_pid=$heapbpf_second
	heapbpf_stop
	whole
	ours=$(reader total p.pb.gz alloc_space)
	theirs=$(go_pprof -top -unit=B -sample_index=alloc_space p.txt 2>/dev/null |
		sed -n 's/.* of \([0-9]*\)B total.*/\1/p')
	awk -v a="$ours" -v b="$theirs" 'BEGIN { d = b / a - 1; exit !(d*d < 0.0064) }' ||
		fail "$theirs bytes from the text form, $ours from the protobuf"
}

test_speedscope() {
	local importer=$TARGETS/../speedscope

	need node npm
	if [[ ! -d $importer/node_modules/speedscope ]]; then
		mkdir -p "$importer"
		HOME=$importer timeout 60 npm install --silent --no-audit --no-fund \
			--prefix "$importer" speedscope@1.25.0 >/dev/null 2>&1 ||
			skip "speedscope could not be installed with npm"
	fi
	record family
	node "$TESTS/speedscope.mjs" "$importer/node_modules/speedscope" p.pb.gz >weights
	equal "$(awk '$1 == "site_calloc" { print $2 }' weights)" 325100 "inuse_space of site_calloc"
}

# Deterministic: the same work of the same program, but for addresses and times.
test_same_work_same_samples() {
	record family
	reader stacks p.pb.gz >first
	target_end
	record family
	reader stacks p.pb.gz >second
	cmp first second
}

e2e_main "$@"
