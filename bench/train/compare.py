#!/usr/bin/python3
"""Training steps of dais and of Debian 13's PyTorch 2.6, alternating in one run.

usage: compare.py RUNNER ROOT [--nets a,b] [--precisions fp32,bf16] [--threads 2] [--rounds 3]
                  [--seconds 2] [--realtime] [--device cpu|gpu] [--compiled] [--json FILE]

RUNNER is train_runner, ROOT the root that torch_root.sh made (whoever runs this may chroot), or
`host` for the python3-torch of this machine. Each net runs in a process of its own on either side;
they take turns, the order swapped each round, with a pause in which the other's threads stop
spinning. A net's time is the best of its rounds' medians. Ratios above 1 mean that dais is faster;
memory is the largest resident size of the process, libraries included. With --device gpu both
compute there (ROOT is `host`); with --compiled PyTorch compiles its nets.
"""
import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NETS = ["mlp", "lenet", "resnet18_32", "resnet50_224", "gpt6x384", "lstm2x512", "ds2"]
LIBRARIES = "/usr/lib/x86_64-linux-gnu/openblas-openmp"


def tuned(threads):
    """Settings under which PyTorch's steps were fastest: OpenMP's BLAS, and memory that is kept."""
    return {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": LIBRARIES, "OMP_NUM_THREADS": str(threads),
            "ATEN_CPU_CAPABILITY": "avx512", "MALLOC_MMAP_THRESHOLD_": "4000000000",
            "MALLOC_TRIM_THRESHOLD_": "8000000000", "MALLOC_TOP_PAD_": "268435456",
            "MALLOC_ARENA_MAX": "1", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


class Side:
    def __init__(self, command, environment=None):
        self.process = subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def steps(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        last = json.loads(self.process.stdout.readline())
        self.process.wait()
        return last


def peer_command(root):
    script = os.path.join(HERE, "torch_peer.py")
    if root == "host":
        return ["python3", script]
    shutil.copy(script, os.path.join(root, "tmp/torch_peer.py"))
    if not os.path.exists(os.path.join(root, "proc/self")):
        # PyTorch asks /proc for its peak memory, and its allocator for large pages.
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                f'mount -t proc proc "{root}/proc" && mount --rbind /sys "{root}/sys" && '
                f'exec chroot "{root}" env "$@"', "sh"]
    return ["chroot", root, "env"]


def start_peer(arguments, net, precision):
    words = [net, precision, str(arguments.threads)]
    if arguments.device == "gpu":
        return (peer_command("host") + words + ["cuda", arguments.compiled and "compiled" or "eager"],
                None)
    command = peer_command(arguments.root)
    settings = tuned(arguments.threads)
    if arguments.root == "host":
        return command + words, settings
    inside = [f"{name}={value}" for name, value in settings.items()]
    return command + ["-i"] + inside + ["python3", "/tmp/torch_peer.py"] + words, None


def compare(arguments, net, precision):
    ahead = ["chrt", "-r", "1"] if arguments.realtime else []
    command, environment = start_peer(arguments, net, precision)
    theirs = Side(ahead + command, environment)
    theirs.steps(0)
    ours = Side(ahead + [arguments.runner, net, precision, str(arguments.threads), "--device",
                         arguments.device])
    ours.steps(0)
    best = {}
    for turn in range(arguments.rounds):
        order = [("dais", ours), ("torch", theirs)]
        for name, side in order if turn % 2 == 0 else reversed(order):
            time.sleep(0.2)
            median = side.steps(arguments.seconds)["median_ms"]
            best[name] = min(best.get(name, math.inf), median)
    ends = {"dais": ours.end(), "torch": theirs.end()}
    if ends["dais"]["parameters"] != ends["torch"]["parameters"]:
        sys.exit(f"{net}: {ends['dais']['parameters']} parameters against "
                 f"{ends['torch']['parameters']}: not the same net")
    return {"net": net, "precision": precision, "dais_ms": best["dais"],
            "torch_ms": best["torch"], "ratio": best["torch"] / best["dais"],
            "dais_mib": ends["dais"]["peak_mib"], "torch_mib": ends["torch"]["peak_mib"],
            "torch": ends["torch"]["version"]}


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("runner")
    parser.add_argument("root")
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--realtime", action="store_true", help="before everything else (chrt -r 1)")
    parser.add_argument("--device", default="cpu", choices=["cpu", "gpu"])
    parser.add_argument("--compiled", action="store_true", help="torch.compile (on a GPU)")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows = []
    print(f"{'net':14} {'type':5} {'torch ms':>10} {'dais ms':>10} {'ratio':>6} "
          f"{'torch MiB':>10} {'dais MiB':>9}")
    for precision in arguments.precisions.split(","):
        part = []
        for net in arguments.nets.split(","):
            row = compare(arguments, net, precision)
            part.append(row)
            print(f"{net:14} {precision:5} {row['torch_ms']:10.2f} {row['dais_ms']:10.2f} "
                  f"{row['ratio']:6.2f} {row['torch_mib']:10.0f} {row['dais_mib']:9.0f}", flush=True)
        print(f"{precision}: geometric mean {mean([row['ratio'] for row in part]):.2f}, least "
              f"{min(row['ratio'] for row in part):.2f}, memory "
              f"{mean([row['torch_mib'] / row['dais_mib'] for row in part]):.2f} "
              f"(PyTorch {part[0]['torch']}, {arguments.threads} threads)", flush=True)
        rows += part
    if arguments.json:
        with open(arguments.json, "w") as to:
            json.dump(rows, to, indent=1)


main()
