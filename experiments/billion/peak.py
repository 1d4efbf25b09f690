"""Run a training command, and say what it held at its peak: peak.py RESULT.json COMMAND..., exit status 1 above 8.7 GB."""
import json
import resource
import subprocess
import sys
import time

LIMIT = 8.7e9

result, command = sys.argv[1], sys.argv[2:]
start = time.perf_counter()
run = subprocess.Popen(command)
anon = 0
while run.poll() is None:
    try:
        with open(f"/proc/{run.pid}/status") as f:
            for line in f:
                if line.startswith("RssAnon:"):
                    anon = max(anon, int(line.split()[1]) * 1024)
    except OSError:
        pass
    time.sleep(0.05)
if run.returncode:
    sys.exit(run.returncode)
with open(command[command.index("--out") + 1] + "/run.json") as f:
    about = json.load(f)
rss = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
data, summary = about["data"], about["summary"]
csr = 8 * data["nonzeros"] + 12 * data["rows"]
r = dict(nonzeros=data["nonzeros"], rows=data["rows"], csr_gb=csr / 1e9, peak_rss_gb=rss / 1e9, peak_anon_gb=anon / 1e9,
         peak_over_csr=rss / csr, load_s=data["load_s"], train_s=summary["seconds"],
         nonzeros_per_s=data["nonzeros"] / summary["seconds"], train_loss=summary["train_loss"],
         wall_s=time.perf_counter() - start, limit_gb=LIMIT / 1e9)
with open(result, "w") as f:
    json.dump(r, f, indent=2)
print(json.dumps(r, indent=2))
sys.exit(0 if rss <= LIMIT else 1)
