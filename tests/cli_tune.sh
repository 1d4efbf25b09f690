#!/usr/bin/env bash
# cli_tune.sh: `mixwild tune` and `mixwild topo` from outside, and the places that runs take. TAP; the program is $MIXWILD.
set -u
. "${MW_SRCDIR:-.}/tests/cli_util.sh"

data=synth:sparse,rows=2000,features=200,nnz=8
small=(--data $data --rate 0.5 --budget 0.5 --repeats 3 --workers 1,2 --oversubscribe --mix-every 64,256)

# --- tune

run tune "${small[@]}" --job "$tmp/best.ini"
status_is 0 && out_has "lowest .. highest" && out_has "The first one:" && out_has "75% for the last ones" && err_has "4 candidates"
report "tune ranks candidates by throughput, with intervals"
grep -q '^\[global\]$' "$tmp/best.ini" && grep -q "^data = $data$" "$tmp/best.ini" && grep -q '^\[tuned\]$' "$tmp/best.ini" &&
	grep -q '^protocol = ' "$tmp/best.ini" && grep -q '^workers = ' "$tmp/best.ini"
report "and writes the winner as a job file"
awk '/^ +rung +ex\/s/ { table = 1; next } table && /^[0-9]/ { lines++; bad += NF != 8 || $3 == "-" || $4 == "-" || $5 == "-" }
	/^Staleness in/ { table = 0 } END { exit !(lines == 4 && !bad) }' "$tmp/out" && { ! grep -qE '^[0-9].* -  *[0-9.]+  *[-0-9.%]+$' "$tmp/out" ||
	out_has "No t_mix for"; } && { out_has "%" || out_has "Remote reads: "; }
report "it explains each: speed, staleness, t_mix, remote reads, or why they aren't there"
command=$(sed -n 's/^  mixwild \(train .*\)/\1/p' "$tmp/out")
# shellcheck disable=SC2086 # the words of the command line that was printed
run $command
status_is 0 && out_has "train loss"
report "the winner's command line runs as it is"
run tune "${small[@]}" --target-loss 0.5 --format json
status_is 0 && out_has '"goal": "loss"' && out_has '"t_mix_gradient_steps"' && out_has '"staleness_mean"' && out_has '"command": "mixwild train' && ! out_has 0.50000
report "a goal of loss, as JSON"
run tune "${small[@]}" --rate 0.3 --protocol cached --mix-every 1000000000 --bind none
status_is 0 && out_has " --rate 0.3 " && grep -qE "^No t_mix for [12]: not computed: it needs more operations than allowed$" "$tmp/out"
report "a period that is longer than a trial: why there is no mixing time; numbers as people wrote them"
run tune "${small[@]}" --format csv
status_is 0 && [ "$(wc -l <"$tmp/out")" -eq 5 ] && awk -F, 'NR == 1 { n = NF } NF != n { exit 1 }' "$tmp/out"
report "as CSV: a line a candidate"
run tune "${small[@]}" --target-loss 1e-9
status_is 0 && out_has "None reached the loss 1e-09"
report "a loss that is out of reach is said to be"
run tune --data $data --workers 5000 --budget 0.1
status_is 4 && err_has "no candidate can be run" && err_has "--oversubscribe"
report "a list without one that can be run"
run tune --data $data --protocol hogwidl
status_is 2 && err_has "--protocol: there is no 'hogwidl'"
report "a protocol that there isn't"
run tune --data $data --workers 1,x
status_is 2 && err_has "--workers"
report "a number that is none"
run tune --data $data --out "$tmp/x"
status_is 2 && err_has "unknown option --out"
report "an option of train that a search can't have"
run tune --data "$tmp/none.svm"
status_is 3
report "a data file that there isn't"

"$mixwild" tune --data $data --workers 1,2 --oversubscribe --budget 600 --repeats 3 >"$tmp/out" 2>"$tmp/err" </dev/null &
pid=$!
for ((i = 0; i < 100; i++)); do
	grep -q candidates "$tmp/err" && break
	sleep 0.05
done
sleep 0.3
kill -INT $pid 2>/dev/null || kill -TERM $pid
sleep 0.2
kill -TERM $pid 2>/dev/null # a background job of a script ignores the first kind
wait $pid
status=$?
{ status_is 130 || status_is 143; } && out_has "Stopped after" && ! out_has "(n = 3)"
report "stopped by a signal: what was found until then, and no chances of runs that were not made"

# --- places of runs

first=$(taskset -cp $$ 2>/dev/null | sed 's/.*: *//; s/[,-].*//')
last=$(taskset -cp $$ 2>/dev/null | sed 's/.*: *//; s/.*[,-]//')
if [ -n "$last" ]; then
	taskset -c "$last" "$mixwild" train --data $data --epochs 1 --out "$tmp/one" >"$tmp/out" 2>"$tmp/err" </dev/null
	status=$?
	status_is 0 && grep -q "\"n_workers\": 1" "$tmp/one/run.json" && grep -q "\"pu_os\": $last," "$tmp/one/run.json" &&
		grep -qE "^w0 .* $last +P#" "$tmp/one/layout.txt" && { [ "$first" = "$last" ] || err_has "The affinity mask"; }
	report "taskset -c $last mixwild train: one worker on P#$last"
	grep -q "masks: read back after training: 1 of 1 as planned" "$tmp/one/layout.txt"
	report "and its mask is read back after training"
else
	for k in 1 2; do n=$((n + 1)) && echo "ok $n # SKIP no taskset here"; done
fi
plain=$("$mixwild" topo --format json | sed -n 's/.*"n_workers": *\([0-9]*\).*/\1/p' | head -n 1)
OMP_PROC_BIND=spread OMP_PLACES=threads run topo --format json
bound=$(sed -n 's/.*"n_workers": *\([0-9]*\).*/\1/p' "$tmp/out" | head -n 1)
[ -n "$plain" ] && [ "$plain" = "$bound" ]
report "OMP_PROC_BIND: an OpenMP runtime that binds the main thread when it is loaded takes no CPU away ($plain workers, $bound)"
grep -qE '^state of worker 0 +P#[0-9]+ +[0-9]+ ' "$tmp/one/layout.txt" 2>/dev/null || [ -z "$last" ]
report "layout.txt says where its memory is"

echo "1..$n"
