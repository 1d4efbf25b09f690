#!/usr/bin/env bash
# cli_report.sh: `mixwild report` and `mixwild plot` from outside. TAP; the program is $MIXWILD.
set -u
. "${MW_SRCDIR:-.}/tests/cli_util.sh"
cd "$tmp" || exit 99

# --- pages

printf '%s\n' "[global]" "data = synth:quadratic,dim=16,noise=1,rows=400" "engine = sim" "workers = 8" "epochs = 10" \
	"protocol = async-ring" "estimate = trace" "[a]" "mix-every = 1 10 100" >job.ini
run sweep job.ini --out runs
status_is 0
report "three runs"
run report runs -o page.html --title 'A & B <c>'
status_is 0 && grep -q '<title>A &amp; B &lt;c&gt;</title>' page.html
report "a page, its title escaped"
missing=
for id in loss-steps loss-epochs loss-seconds tmix tmix-loss tmix-target consensus staleness runs layout options origin; do
	grep -q "<section id=\"$id\"" page.html || missing="$missing $id"
done
[ -z "$missing" ] || { echo "# missing:$missing"; false; }
report "it has every section"
! grep -oE '(src|href|url)[=(][^ >]*' page.html | grep -q . && ! grep -oE 'https?://[^" ]*' page.html | grep -qv '^http://www.w3.org/2000/svg$'
report "nothing in it comes from elsewhere"
! grep -qiE '>(nan|inf|-nan)|[ML ](nan|inf)' page.html
report "no number in it is none"
unbalanced=
for tag in section figure svg table tr td th p ul li div span; do
	a=$(grep -oE "<$tag[ >]" page.html | wc -l) b=$(grep -oF "</$tag>" page.html | wc -l)
	[ "$a" -eq "$b" ] || unbalanced="$unbalanced $tag($a,$b)"
done
[ -z "$unbalanced" ] || { echo "# $unbalanced"; false; }
report "its elements are closed"
grep -q 'mix-every</th>' page.html && grep -q '<td>async-ring</td>\|<tr><td>protocol</td><td>async-ring</td>' page.html
report "options that differ are apart from those in common"
run report runs/a/mix-every=1 -o one.html
status_is 0 && ! grep -q 'id="tmix-target"' one.html && grep -q 'async-ring' one.html
report "one run alone"
run report "$tmp/nowhere"
status_is 3
report "no such folder"
mkdir empty
run report empty
status_is 3 && err_has 'no run in this folder'
report "a folder without a run"
mkdir bad && echo '{' >bad/run.json
run report bad
status_is 3 && err_has 'bad/run.json:'
report "a damaged run.json is named with its place"
run report runs -o /nowhere/page.html
status_is 4
report "a page that can't be written"
"$mixwild" train --data synth:sparse,rows=300,features=50,nnz=5 --workers 2 --oversubscribe --epochs 2 --out threads >out 2>err &&
	"$mixwild" report threads -o threads.html 2>err && grep -q 'class="node">NUMA node' threads.html && grep -q '<b>w1</b>' threads.html
status=$?
report "the layout of a run with bound workers is drawn"

# --- single figures

printf '%s\n' 'p,n,t' 'a,2,4' 'a,4,16' 'a,8,64' 'b,2,8' 'b,4,8.5' 'b,8,9' 'b,16,9.5' >data.csv
run plot data.csv --x n --y t --by p --format csv
[ "$(sed -n 2p out)" = "a,3,1,,,0.9449111825,,,2" ] && [ "$(grep -c . out)" -eq 3 ] && status_is 0
report "correlations and slopes of a CSV file"
run plot data.csv --x n --y nix
status_is 2 && err_has "no column 'nix' (it has: p, n, t)"
report "a column that isn't there"
run plot data.csv --x n
status_is 2 && err_has 'Give --x and --y'
report "columns are needed"
run plot loss-steps
status_is 2 && err_has 'of which runs'
report "runs are needed"
run plot los-steps runs
status_is 2 && err_has "did you mean 'loss-steps'"
report "a figure that isn't there"
run plot loss-steps runs --x n
status_is 2 && err_has '--x is for figures of a CSV file'
report "options that would be ignored are refused"
run plot data.csv --x n --y t -o figure.gif
status_is 2 && err_has 'an .svg, .png or .pdf file'
report "another ending"

if command -v gnuplot >/dev/null; then
	run plot data.csv --x n --y t --by p --xlog --ylog -o figure.svg --title "it's" --xlabel "workers" --ylabel "rounds"
	status_is 0 && grep -q '<svg' figure.svg && [ -s figure.gp ] && [ -s figure.dat ] && ! grep -q "$tmp" figure.gp
	report "an SVG, with script and data beside it"
	rm figure.svg && gnuplot figure.gp && [ -s figure.svg ]
	status=$?
	report "the script alone makes it again"
	run plot staleness runs/a/mix-every=1 -o figure.pdf
	status_is 0 && [ "$(head -c 4 figure.pdf)" = %PDF ]
	report "a PDF of a run"
	run plot tmix runs -o sub.png
	status_is 0 && [ "$(head -c 4 sub.png | tail -c 3)" = PNG ]
	report "a PNG"
else
	skip "figures by gnuplot" "no gnuplot here"
fi
mkdir bin && ln -s "$(command -v sh)" bin/sh
PATH=$tmp/bin run plot data.csv --x n --y t -o without.svg
status_is 4 && err_has 'apt-get install gnuplot-nox' && [ -s without.gp ] && [ -s without.dat ]
report "without gnuplot the package is named, and the script is there"
echo "1..$n"
