#!/usr/bin/env bash
# cli_sweep.sh: `mixwild sweep` from outside: products, searches, what is refused before anything runs, resuming, signals.
# TAP; the program is $MIXWILD.
set -u
. "${MW_SRCDIR:-.}/tests/cli_util.sh"
cd "$tmp" || exit 99

# sweep ARGUMENT...: fills out, err, $status
sweep() { run sweep "$@"; }
# refused LINE TEXT: a usage error that names the line, and nothing was run
refused() { status_is 2 && err_has "job.ini:$1: $2" && [ ! -e runs ]; }
# column FILE NAME: its values; fields in quotation marks have commas
column() {
	awk -v name="$2" '
		function cut(line, f,   i, c, q, k, s) { k = 1; s = ""; q = 0
			for (i = 1; i <= length(line); i++) { c = substr(line, i, 1)
				if (c == "\"") q = !q; else if (c == "," && !q) { f[k++] = s; s = "" } else s = s c }
			f[k] = s; return k }
		NR == 1 { m = cut($0, f); for (i = 1; i <= m; i++) if (f[i] == name) at = i; next }
		{ cut($0, f); print f[at] }' "$1"
}
# job TEXT: write job.ini
job() { printf '%s\n' "$@" >job.ini; }

base='[global]
data = synth:sparse,rows=300,features=50,nnz=5
engine = sim
workers = 4
epochs = 2
protocol = sync-ring'

# --- products

job "$base" "[a]" "mix-every = 1 10" "seed = 1..3" "[b]" "epochs = 1" "slack = geom:1.0,0.01,3"
sweep job.ini --dry-run
status_is 0 && [ "$(grep -c 'to be run$' out)" -eq 9 ] && [ ! -e runs ] &&
	grep -qx 'runs/job/a/mix-every=10,seed=3: sim, to be run' out && grep -qx 'runs/job/b/slack=0.1: sim, to be run' out
report "lists, ranges and geometric lists make the product; a dry run makes nothing"

sweep job.ini
status_is 0 && [ "$(column runs/job/index.csv status | grep -c '^done$')" -eq 9 ] &&
	[ "$(find runs/job -name run.json | wc -l)" -eq 9 ] && [ -s runs/job/job.ini ] && [ -s runs/job/a/mix-every=1,seed=1/log.txt ]
report "every run has a folder and a line in index.csv"
[ "$(column runs/job/index.csv epochs | tr '\n' ' ')" = "2 2 2 2 2 2 1 1 1 " ] &&
	[ "$(column runs/job/index.csv mix_every | tr '\n' ' ')" = "1 1 1 10 10 10    " ] &&
	[ "$(column runs/job/index.csv tmix_exact | head -6 | tr '\n' ' ')" = "1 1 1 10 10 10 " ]
report "the index has options and results in columns"

"$mixwild" train --data synth:sparse,rows=300,features=50,nnz=5 --engine sim --workers 4 --epochs 2 --protocol sync-ring \
	--mix-every 10 --seed 2 --out alone >/dev/null 2>&1
cmp -s <(tail -c 200 alone/model.safetensors) <(tail -c 200 runs/job/a/mix-every=10,seed=2/model.safetensors)
report "a run of the sweep gives the parameters of the same run alone"

touch stamp
sleep 0.02
sweep job.ini
status_is 0 && [ -z "$(find runs -name run.json -newer stamp)" ]
report "finished runs are not repeated"
rm runs/job/a/mix-every=1,seed=3/run.json
sweep job.ini
status_is 0 && [ "$(find runs -name run.json -newer stamp)" = runs/job/a/mix-every=1,seed=3/run.json ]
report "the one that is missing is"

sed -i 's/^epochs = 2/epochs = 3/' job.ini
sweep job.ini
status_is 2 && err_has 'holds a run with other options (epochs was 2.0, now it is 3.0)'
report "runs with other options are not taken for these"
sweep job.ini --force
status_is 0 && [ "$(column runs/job/index.csv epochs_done | sort -u | tr '\n' ' ')" = "1 3 " ]
report "--force replaces them"
rm -r runs

# --- what is refused, before anything runs

job "$base" "[a]" "mix-evry = 3"
sweep job.ini
refused 8 'unknown option mix-evry; did you mean mix-every?'
report "an unknown key"
job "$base" "[a]" "workers = 2" "[b]" "epochs = 1" "slack = 0.5 3"
sweep job.ini
refused 11 'option slack: 3 is out of range'
report "a value out of range in a later job"
job "$base" "[a]" "beta1 = 0.5"
sweep job.ini
status_is 2 && err_has '[a]: option --beta1 belongs to optimizer' && [ ! -e runs ]
report "an option of a plug-in that is not chosen"
job "$base" "[a]" "rate = grid:0.1,1,3"
sweep job.ini
refused 8 'rates are searched on the validation split'
report "a search without validation split"
job "$base" "[a]" "rate = grid:1,0.1,3"
sweep job.ini
refused 8 'rate = grid:1,0.1,3: write grid:LOW,HIGH,N'
report "a grid the wrong way round"
job "$base" "[a]" "seed = 1 2 1"
sweep job.ini
refused 8 'seed has the value 1 twice'
report "a value twice"
for line in "out = x" "resume = yes" "seed = 5..1" "seed =" 'model = "x' "slack = geom:1,2"; do
	job "$base" "[a]" "$line"
	sweep job.ini
	status_is 2 && err_has "job.ini:8: " && [ ! -e runs ]
	report "refused with its line: $line"
done
job "[global]" "data = x"
sweep job.ini
status_is 2 && err_has 'there is no job'
report "a file without a job"
sweep nowhere.ini
status_is 3 && err_has "nowhere.ini: can't be opened"
report "a file that is not there"

# --- searched rates

job "$base" "val = 0.2" "[a]" "rate = grid:0.001,0.01,2" "seed = 1 2"
sweep job.ini
status_is 0 && [ "$(column runs/job/index.csv rate | tr '\n' ' ')" = "0.001 0.01 0.1 1 10 1 " ] &&
	[ "$(column runs/job/index.csv role | grep -c final)" -eq 2 ]
report "the grid grows while the best rate is at its end; every seed gets the best rate"
best=$(awk '/./' <(paste <(column runs/job/index.csv val_loss) <(column runs/job/index.csv rate) <(column runs/job/index.csv seed)) |
	awk '$3 == 1' | sort -g | head -1 | cut -f 2)
[ "$(paste <(column runs/job/index.csv role) <(column runs/job/index.csv rate) | awk '$1 == "final" { print $2 }' | sort -u)" = "$best" ]
report "the rate chosen is the one of the least validation loss"
touch stamp
sleep 0.02
sweep job.ini
status_is 0 && [ -z "$(find runs -name run.json -newer stamp)" ] && [ "$(column runs/job/index.csv role | grep -c final)" -eq 2 ]
report "a search that is done is not repeated"
rm -r runs

# --- failures and divergence

job "$base" "[gone]" "data = nowhere.svm" "[good]" "epochs = 1" "[wild]" "data = synth:quadratic,dim=4,rows=100" "rate = 1000"
sweep job.ini
status_is 3 && err_has '1 of 3 runs failed' && err_has 'nowhere.svm' &&
	[ "$(column runs/job/index.csv status | tr '\n' ' ')" = "failed done diverged " ]
report "one that fails or diverges does not keep the others back"
rm -r runs

# --- interrupts

job "[global]" "data = synth:quadratic,dim=64,noise=1,rows=10000" "engine = sim" "protocol = async-ring" "epochs = 40" \
	"rate = 0.001" "workers = 8" "[a]" "seed = 1..3"
"$mixwild" sweep job.ini --jobs 1 >out 2>err &
pid=$!
for _ in $(seq 200); do [ "$(cat runs/job/a/seed=2/metrics.jsonl 2>/dev/null | wc -l)" -ge 2 ] && break; sleep 0.05; done
kill -TERM $pid
wait $pid
status=$?
status_is 143 && grep -q '"stopped_by": "signal"' runs/job/a/seed=2/run.json && [ ! -e runs/job/a/seed=3/run.json ]
report "a signal ends the sweep, and what was running is saved"
touch stamp
sleep 0.02
sweep job.ini --jobs 1
status_is 0 && [ ! runs/job/a/seed=1/run.json -nt stamp ] && grep -q '"epochs"' runs/job/a/seed=2/run.json &&
	[ "$(column runs/job/index.csv stopped_by | sort -u)" = epochs ]
report "the same command goes on: resumes the one, runs the rest"
"$mixwild" train --data synth:quadratic,dim=64,noise=1,rows=10000 --engine sim --protocol async-ring --epochs 40 --rate 0.001 \
	--workers 8 --seed 2 --out whole >/dev/null 2>&1
a=$(sed -n 's/.*"examples": *\([0-9]*\).*/\1/p' whole/run.json | tail -1)
b=$(sed -n 's/.*"examples": *\([0-9]*\).*/\1/p' runs/job/a/seed=2/run.json | tail -1)
[ -n "$a" ] && [ "$a" = "$b" ]
report "and the resumed run has seen as many examples as an uninterrupted one"
rm -r runs

"$mixwild" sweep job.ini --jobs 2 >out 2>err &
pid=$!
for _ in $(seq 200); do [ -s runs/job/a/seed=2/metrics.jsonl ] && break; sleep 0.05; done
sweep job.ini
status_is 2 && err_has 'another sweep is at work'
report "two sweeps don't share a folder"
children=$(grep -ls "^PPid:[[:space:]]*$pid\$" /proc/[0-9]*/status | cut -d / -f 3 | tr '\n' ' ')
kill -KILL $pid
wait $pid 2>/dev/null
for _ in $(seq 200); do
	alive=0
	for c in $children; do kill -0 "$c" 2>/dev/null && [ "$(awk '{ print $3 }' "/proc/$c/stat" 2>/dev/null)" != Z ] && alive=1; done
	[ $alive -eq 0 ] && break
	sleep 0.05
done
[ -n "$children" ] && [ $alive -eq 0 ]
report "runs end with a sweep that is killed"
rm -r runs

# --- both engines in one file

job "$base" "[threads]" "engine = threads" "oversubscribe = yes" "workers = 2" "seed = 1 2" "trace = {out}/trace.bin" "protocol = hogwild" "[sim]"
sweep job.ini --format csv
status_is 0 && [ "$(column out status | sort | uniq -c | tr -s ' ')" = " 3 done" ] && [ -s runs/job/threads/seed=2/trace.bin ]
report "threads and sim; {out} is the run's folder; the table as csv"

echo "1..$n"
