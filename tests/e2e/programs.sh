#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Real programs under load, neither prepared nor restarted: their answers stay right, their stacks
# complete, their profiles say something.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# Where threads begin.
roots='entry|_start|clone|clone3|__clone3'

# plausible TYPE REGEX: bytes of TYPE were seen below a function that matches, and 99.9 percent of all
# samples have a stack that was walked to where its thread began.
plausible() {
	local complete all

	reader valid p.pb.gz
	(($(reader total p.pb.gz "$1") > 0)) || fail "no $1"
	reader stacks p.pb.gz >walked
	grep -qE "$2" walked || fail "no stack with $2"
	read -r complete _ all _ < <(reader comments p.pb.gz | grep 'stacks complete$')
	((all > 100)) || fail "$all samples are no sample"
	((complete * 1000 >= all * 999)) || fail "$complete of $all stacks are complete"
	reader roots p.pb.gz >ends
	awk -v roots="^($roots)\$" '
		$2 ~ roots { good += $1 }
		{ all += $1 }
		END { exit good * 1000 < all * 999 }' ends || fail "roots: $(<ends)"
}

test_sqlite3() {
	local answer

	need sqlite3
	target_spawn stdbuf -oL sqlite3 data.db
	printf "select 'READY';\n" >&"$target_in"
	target_await READY
	heapbpf_start -p "$target_pid" -r 1 -o p.pb.gz
	cat >&"$target_in" <<-'END'
		create table t(id integer primary key, name text, body blob);
		with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
		insert into t select i, 'name ' || i, zeroblob(i % 300) from n;
		create index by_name on t(name);
		select count(*), sum(length(body)), max(name) from t;
		select 'DONE';
	END
	answer=$(target_await DONE)
	heapbpf_stop
	whole
	equal "$answer" "20000|2980200|name 9999" "answer of sqlite3"
	plausible alloc_space 'sqlite3|main'
	plausible inuse_space 'libsqlite3|sqlite3|main|0x'
}

rss=0

# Resident bytes of the target.
resident() {
	awk '$1 == "VmRSS:" { print $2 * 1024 }' "/proc/$target_pid/status"
}

# python OBJECTS [ENVIRONMENT...]: makes that many, keeps them, and tells how much is in them.
python() {
	local objects=$1

	shift
	target_exec env "$@" /usr/bin/python3 -c '
import sys
print("READY", flush=True)
sys.stdin.read(1)
kept = [{"list": list(range(1000, 1100))} for i in range(int(sys.argv[1]))]
print(sum(len(k["list"]) for k in kept))
print("DONE", flush=True)
sys.stdin.read(1)
' "$objects"
	rss=$(resident)
	heapbpf_start --max-overhead none -p "$target_pid" -r 8K -o p.pb.gz
	target_go
	equal "$(target_await DONE)" $((objects * 100)) "answer of python"
	heapbpf_stop
	whole
}

test_python3() {
	python 20000
	plausible inuse_space 'Py|_start|0x'
	target_end
}

# Every object is a block of its own now, and all of them are seen.
test_python3_with_malloc() {
	local seen

	python 3000 PYTHONMALLOC=malloc
	plausible inuse_space 'Py|_start|0x'
	seen=$(reader total p.pb.gz inuse_space)
	rss=$(($(resident) - rss))
	((seen > rss / 2 && seen < rss * 3 / 2)) || fail "$seen bytes seen, $rss more resident"
	target_end
}

nginx_master=

test_nginx_worker() {
	local worker

	need nginx
	cat >nginx.conf <<-END
		daemon off;
		user root;
		worker_processes 1;
		error_log $test_dir/error.log;
		pid $test_dir/nginx.pid;
		events { worker_connections 64; }
		http {
			access_log off;
			client_body_temp_path $test_dir/t1; proxy_temp_path $test_dir/t2;
			fastcgi_temp_path $test_dir/t3; uwsgi_temp_path $test_dir/t4;
			scgi_temp_path $test_dir/t5;
			server { listen unix:$test_dir/socket; location / { return 200 "fine"; } }
		}
	END
	nginx -c "$test_dir/nginx.conf" -p "$test_dir" -e "$test_dir/error.log" 2>messages &
	nginx_master=$!
	pids+=("$nginx_master")
	eventually test -S socket
	eventually pgrep -P "$nginx_master" >worker
	worker=$(<worker)
	pids+=("$worker")
	heapbpf_start -p "$worker" -r 1 -o p.pb.gz
	/usr/bin/python3 - <<-'END'
		import socket
		for _ in range(500):
		    with socket.socket(socket.AF_UNIX) as link:
		        link.connect("socket")
		        link.sendall(b"GET / HTTP/1.0\r\n\r\n")
		        answer = b""
		        while chunk := link.recv(4096):
		            answer += chunk
		    assert answer.endswith(b"fine"), answer
	END
	heapbpf_stop
	whole
	plausible alloc_space 'ngx|nginx|0x|posix_memalign'
	(($(reader total p.pb.gz alloc_objects) >= 500))
	kill "$nginx_master"
	wait "$nginx_master" || true
}

test_redis() {
	local redis=(redis-cli -s "$test_dir/socket")

	need redis-server redis-cli redis-benchmark
	redis-server --port 0 --unixsocket "$test_dir/socket" --save "" --dir "$test_dir" >messages &
	pids+=($!)
	eventually "${redis[@]}" ping >answer
	heapbpf_start -p "${pids[-1]}" -r 1 -o p.pb.gz
	redis-benchmark -s "$test_dir/socket" -q -n 3000 -c 20 -r 500 -t set,lpush,lrange_100,hset,zadd \
		>bench
	"${redis[@]}" eval 'local t = {} for i = 1, 2000 do t[i] = "x" .. i end
		redis.call("rpush", "list", unpack(t)) return redis.call("llen", "list")' 0 >answer
	heapbpf_stop
	whole
	equal "$(<answer)" 2000 "answer of redis"
	plausible alloc_space 'zmalloc|redis|sds|0x'
	plausible inuse_space 'createObject|zmalloc|0x'
	"${redis[@]}" shutdown nosave || true
}

test_mariadb() {
	local sql=(mariadb --no-defaults -S "$test_dir/socket" -u root -N -B) server options

	need mariadbd mariadb mariadb-install-db
	options=(--no-defaults --user=root --datadir="$test_dir/db" --innodb-buffer-pool-size=16M)
	mariadb-install-db "${options[@]}" --auth-root-authentication-method=normal \
		--skip-test-db >messages 2>&1
	mariadbd "${options[@]}" --socket="$test_dir/socket" --skip-networking --pid-file=pid \
		>>messages 2>&1 &
	server=$!
	pids+=("$server")
	eventually "${sql[@]}" -e 'select 1' >/dev/null
	heapbpf_start -p "$server" -r 1 -o p.pb.gz
	"${sql[@]}" >answer <<-'END'
		create database d;
		use d;
		create table t(id int primary key, name varchar(40), body blob) engine=innodb;
		insert into t select seq, concat('name ', seq), repeat('x', seq % 300) from seq_1_to_5000;
		create index by_name on t(name);
		select count(*), sum(length(body)), max(name) from t;
		select a.id from t a join t b on a.id = b.id order by b.name desc limit 1;
	END
	heapbpf_stop
	whole
	equal "$(tr '\t\n' '  ' <answer)" "5000 737700 name 999 999 " "answer of mariadb"
	plausible alloc_space 'my_malloc|Query|mariadbd|0x'
	kill "$server"
	wait "$server" || true
}

# Leaves the pid of the process that serves pgbench in the file `backend`.
backend_of_pgbench() {
	as_postgres psql -qAtc "select pid from pg_stat_activity
		where application_name = 'pgbench' and query ~ '^(BEGIN|END|UPDATE|INSERT)' and state is not null limit 1" >backend
	[[ -s backend ]]
}

test_postgres_backend() {
	local backend

	postgres_serve
	exec_as_postgres pgbench -c 1 -T 300 >bench 2>&1 &
	bench=$!
	pids+=("$bench")
	eventually backend_of_pgbench
	backend=$(<backend)
	heapbpf_run --max-overhead none -p "$backend" -d 3s -r 64K -o p.pb.gz
	whole
	plausible alloc_space 'AllocSet|palloc|postgres|0x'
	kill -0 "$bench" || fail "pgbench did not go on: $(<bench)"
	as_postgres psql -qAtc "select pg_terminate_backend(pid) from pg_stat_activity
		where application_name = 'pgbench'" >/dev/null
	wait "$bench" || true
	equal "$(as_postgres psql -qAtc 'select count(*) from pgbench_accounts')" 100000 "accounts"
	kill -INT "$(head -n 1 db/data/postmaster.pid)"
}

e2e_main "$@"
