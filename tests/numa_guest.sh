#!/bin/sh
# numa_guest.sh: runs inside the virtual machine of tests/numa-vm: trains with every kind of layout, and checks from inside that
# threads run where they were put and that pages are on their nodes. Usage: numa_guest.sh NODES CPUS_PER_NODE
nodes=$1 cpus=$2 n=0 bad=0
all=$((nodes * cpus))

say() {
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		bad=$((bad + 1))
		sed 's/^/# /' /tmp/err | tail -n 30
		sed 's/^/# out: /' /tmp/out | tail -n 20
		dmesg | grep -E 'segfault|Out of memory' | tail -n 3 | sed 's/^/# /'
		sed 's/^/# /' /tmp/run/layout.txt
	fi
}

# Every line of the table of memory that names one node has all its pages there, and there are such lines.
pages_are_home() {
	awk '/^memory of/ { table = 1; next }
		table && match($0, /P#[0-9]+ +[0-9]+ +P#/) {
			split(substr($0, 33), f, / +/)
			lines++
			if (f[3] != f[1] || f[4] != "100%") { print "# stray: " $0; wrong++ }
		}
		END { exit !(lines > 0 && !wrong) }' /tmp/run/layout.txt
}

loss() { sed -n "$1s/.*\"train_loss\":\([0-9.]*\).*/\1/p" /tmp/run/metrics.jsonl; }
loss_falls() { awk -v a="$(loss 1)" -v b="$(loss '$')" 'BEGIN { exit !(b < 0.99 * a) }'; }

data=synth:sparse,rows=12000,features=8000,nnz=8

# train WORKERS NODES WHAT OPTION...
train() {
	want=$1 on=$2 what=$3
	shift 3
	mixwild train --data $data --rate 0.5 --epochs 1 --eval-every 1 --eval-rows 2000 --workers "$want" \
		--out /tmp/run --force "$@" >/tmp/out 2>/tmp/err
	status=$?
	[ $status -eq 0 ] && pages_are_home && loss_falls && grep -q "^$want workers* on $on of $nodes NUMA" /tmp/run/layout.txt &&
		grep -q "masks: read back after training: $want of $want as planned" /tmp/run/layout.txt
	say $? "$what: status $status, loss $(loss 1) to $(loss '$')"
}

numa_probe "$nodes" "$cpus" >/tmp/err 2>&1
say $? "numa_probe: threads and pages of bare layouts"

strict="--mem-strict"
train "$all" "$nodes" "numa, close" --protocol numa $strict
train "$nodes" "$nodes" "numa, spread, places numa" --protocol numa --bind spread --places numa --average-every 128 $strict
# Changes of workers to the same old copy are added up: paced, exchanged often and small, for here many share few real CPUs.
gently="--rate 0.1 --straggler constant:0.0005"
train "$all" "$nodes" "token-ring, spread" --protocol token-ring --groups "$nodes" --hop-every 1 --bind spread $gently $strict
train "$all" "$nodes" "cached, shards" --protocol cached --merge-every 2 --data-place shard $gently $strict
train "$all" "$nodes" "sync-ring of dense rows" --protocol sync-ring --data synth:dense,rows=400,features=2000 $strict
train "$all" "$nodes" "hogwild, a copy of the data on each node" --data-place replicate $strict
train "$cpus" 1 "one node only" --protocol cached --merge-every 2 $gently $strict
echo 0 >/proc/sys/kernel/numa_balancing # it would move what isn't bound
train "$all" "$nodes" "first touch, shards" --protocol numa --mem first-touch --data-place shard
mixwild train --data $data --epochs 1 --workers "$all" --mem interleave --out /tmp/run --force >/tmp/out 2>/tmp/err
grep -q "^replica 0 *all nodes .*P#0 .*P#1 " /tmp/run/layout.txt
say $? "interleave: replica 0 is on several nodes"

# Where threads really are, by the kernel's word, in the middle of a run.
rm -r /tmp/run
mixwild train --data $data --epochs 1000000 --eval-every 0 --protocol numa --workers "$all" --bind spread --out /tmp/run \
	--force >/tmp/out 2>/tmp/err &
pid=$!
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	sleep 1
	grep -q "^masks: " /tmp/run/layout.txt 2>/dev/null && break
done
sleep 1
awk '/^w[0-9]/ { print $6 }' /tmp/run/layout.txt | sort >/tmp/planned
for task in /proc/$pid/task/*; do
	allowed=$(sed -n 's/^Cpus_allowed_list:[^0-9]*//p' "$task/status")
	now=$(sed 's/.*) //' "$task/stat" | cut -d' ' -f37)
	case $allowed in
	*[-,]*) ;; # the controller
	"$now") echo "$now" ;;
	*) echo "task ${task##*/} runs on $now, allowed $allowed" ;;
	esac
done | sort >/tmp/found
kill -TERM $pid
wait $pid
status=$?
cat /tmp/found >>/tmp/err
[ "$(wc -l </tmp/planned)" -eq "$all" ] && cmp -s /tmp/planned /tmp/found
say $? "in the middle of a run every worker is on its CPU: status $status"

# ---- What the process may use

# group NAME FILE=VALUE... -- COMMAND...: in a cgroup of its own
group() {
	at=/sys/fs/cgroup/$1
	shift
	mkdir -p "$at"
	while [ "$1" != -- ]; do
		echo "${1#*=}" >"$at/${1%%=*}"
		shift
	done
	shift
	sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$at" "$@" >/tmp/out 2>/tmp/err
	status=$?
}
short="--data $data --rate 0.1 --epochs 1 --out /tmp/run --force"

echo "+cpu +cpuset" >/sys/fs/cgroup/cgroup.subtree_control
group quota "cpu.max=200000 100000" -- mixwild train $short
[ $status -eq 0 ] && grep -q "^2 workers on 1 of $nodes NUMA" /tmp/run/layout.txt && grep -q "CPU quota is 2.00 CPUs (/sys/fs/cgroup/quota/cpu.max)" /tmp/err &&
	grep -q "There are 2 workers instead of $all because of the CPU quota" /tmp/err
say $? "a CPU quota of 2: two workers, and the reason: status $status"
last=$((nodes - 1)) from=$((all - cpus)) to=$((all - 1))
group cpuset "cpuset.cpus=$from-$to" cpuset.mems=$last -- mixwild train $short --protocol numa $strict
[ $status -eq 0 ] && pages_are_home && grep -q "^$cpus workers on 1 of 1 NUMA" /tmp/run/layout.txt &&
	[ "$(awk '/^w[0-9]/ { print $6 }' /tmp/run/layout.txt | sort -n | tr '\n' ' ')" = "$(seq -s ' ' "$from" "$to") " ] &&
	! grep -q "P#0 .*100%" /tmp/run/layout.txt
say $? "a cpuset of the last node's CPUs and memory: status $status"
taskset 2 mixwild train $short >/tmp/out 2>/tmp/err # the mask of P#1
status=$?
[ $status -eq 0 ] && grep -q "^1 worker on 1 of $nodes NUMA" /tmp/run/layout.txt && grep -q "^w0 .* 1  *P#0" /tmp/run/layout.txt
say $? "an affinity mask of P#1: one worker, there: status $status"

# The search explains itself on several nodes too: numa is among the candidates; the counters are not there.
mixwild tune --data $data --rate 0.1 --workers "$nodes" --mix-every 256 --data-place shared --bind spread --budget 2 --repeats 1 >/tmp/out 2>/tmp/err
status=$?
[ $status -eq 0 ] && grep -q "^[123] .* numa " /tmp/out && grep -q "staleness mean .*t_mix .*remote reads" /tmp/out && grep -q "^Remote reads: " /tmp/out &&
	awk '/ rung +ex/ { t = 1; next } /^Staleness/ { t = 0 } t && /^[0-9]/ { n++; bad += $3 == "-" || $6 == "-" } END { exit !(n == 3 && !bad) }' /tmp/out
say $? "tune explains speed, staleness and t_mix of its candidates: status $status"

echo "1..$n"
[ $bad -eq 0 ]
