"""ral beside other shells and plain Python: whole programs, interleaved in one run, ratios of medians.

    scripts/bench [--rounds N] [--only NAME] [--markdown FILE] [--png FILE]

Every round runs every program of a table once, in a new random order, so that what disturbs the machine disturbs all alike.
A ratio is the median of the rounds' ratios. Shells that are not installed are left out, and it says how to install them.
"""

import argparse
import os
import platform
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RAL = shutil.which("ral", path=str(Path(sys.executable).parent)) or "ral"
PY = os.path.realpath(sys.executable)
INSTALL = {
    "dash": "apt-get install dash",
    "zsh": "apt-get install zsh",
    "fish": "apt-get install fish",
    "xonsh": "pip install xonsh",
    "bash": "apt-get install bash",
}

PYTHON = {
    "fib 22": "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nprint(fib(22))",
    "tail loop 1,000,000": (
        "def go(n, acc):\n    while n != 0:\n        n, acc = n - 1, acc + n\n    return acc\nprint(go(1000000, 0))"
    ),
    "even/odd 1,000,000": (
        "def even(n):\n    return True if n == 0 else (odd, n - 1)\ndef odd(n):\n    return False if n == 0 else (even, n - 1)\n"
        "r = (even, 1000000)\nwhile type(r) is tuple:\n    r = r[0](r[1])\nprint(r)"
    ),
    "map 1,000,000": "xs = list(range(1000000))\nf = lambda n: n * 2 + 1\nys = []\nfor x in xs:\n    ys.append(f(x))\nprint(len(ys))",
    "fold 1,000,000": "xs = list(range(1000000))\nf = lambda a, n: a + n\nt = 0\nfor x in xs:\n    t = f(t, x)\nprint(t)",
    "non-tail 50,000 deep": (
        "import sys\nsys.setrecursionlimit(100000)\ndef deep(n):\n    return 0 if n == 0 else 1 + deep(n - 1)\nprint(deep(50000))"
    ),
}

POSIX_LOOP = "i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i+1)); done"
POSIX_PIPES = "i=0; while [ $i -lt 300 ]; do /bin/true | /bin/true | /bin/true; i=$((i+1)); done"

PROGRAMS: dict[str, dict[str, str]] = {
    "start-up": {
        "ral": "echo hi", "bash": "echo hi", "dash": "echo hi", "zsh": "echo hi", "fish": "echo hi", "xonsh": "echo hi",
        "python": "pass",
    },
    "1,000 externals": {
        "ral": "each { |_| /bin/true } !{range 0 1000}",
        "bash": "for ((i=0;i<1000;i++)); do /bin/true; done", "dash": POSIX_LOOP,
        "zsh": "for ((i=0;i<1000;i++)); do /bin/true; done", "fish": "for i in (seq 1000); /bin/true; end",
        "xonsh": "for i in range(1000):\n    /bin/true\n",
        "python": "import os\nfor i in range(1000):\n    os.waitpid(os.posix_spawn('/bin/true', ['true'], os.environ), 0)",
    },
    "300 pipelines of 3": {
        "ral": "each { |_| /bin/true | /bin/true | /bin/true } !{range 0 300}",
        "bash": "for ((i=0;i<300;i++)); do /bin/true | /bin/true | /bin/true; done", "dash": POSIX_PIPES,
        "zsh": "for ((i=0;i<300;i++)); do /bin/true | /bin/true | /bin/true; done",
        "fish": "for i in (seq 300); /bin/true | /bin/true | /bin/true; end",
    },
    "fib 22": {
        "ral": "let fib = { |n| if $[$n < 2] { return $n } else { return $[!{fib $[$n - 1]} + !{fib $[$n - 2]}] } }\necho !{fib 22}",
        "bash": "fib() { if (($1 < 2)); then r=$1; else fib $(($1-1)); local a=$r; fib $(($1-2)); r=$((a+r)); fi; }; fib 22; echo $r",
        "zsh": "fib() { if (($1 < 2)); then r=$1; else fib $(($1-1)); local a=$r; fib $(($1-2)); r=$((a+r)); fi; }; fib 22; echo $r",
        "python": PYTHON["fib 22"],
    },
    "tail loop 1,000,000": {
        "ral": "let go = { |n acc| if $[$n == 0] { return $acc } else { go $[$n - 1] $[$acc + $n] } }\necho !{go 1000000 0}",
        "bash": "n=1000000; a=0; while ((n != 0)); do ((a += n, n -= 1)); done; echo $a",
        "dash": "n=1000000; a=0; while [ $n -ne 0 ]; do a=$((a + n)); n=$((n - 1)); done; echo $a",
        "zsh": "n=1000000; a=0; while ((n != 0)); do ((a += n, n -= 1)); done; echo $a",
        "python": PYTHON["tail loop 1,000,000"],
    },
    "even/odd 1,000,000": {
        "ral": "let even = { |n| if $[$n == 0] { return true } else { odd $[$n - 1] } }\n"
        "let odd = { |n| if $[$n == 0] { return false } else { even $[$n - 1] } }\necho !{even 1000000}",
        "python": PYTHON["even/odd 1,000,000"],
    },
    "map 1,000,000": {
        "ral": "echo !{length !{map { |n| $[$n * 2 + 1] } !{range 0 1000000}}}",
        "bash": "f() { r=$(($1 * 2 + 1)); }; for ((i=0;i<1000000;i++)); do f $i; y[i]=$r; done; echo ${#y[@]}",
        "python": PYTHON["map 1,000,000"],
    },
    "fold 1,000,000": {
        "ral": "echo !{fold { |a n| $[$a + $n] } 0 !{range 0 1000000}}",
        "bash": "f() { r=$(($1 + $2)); }; r=0; for ((i=0;i<1000000;i++)); do f $r $i; done; echo $r",
        "python": PYTHON["fold 1,000,000"],
    },
    "non-tail 50,000 deep": {
        "ral": "let deep = { |n| if $[$n == 0] { return 0 } else { return $[1 + !{deep $[$n - 1]}] } }\necho !{deep 50000}",
        "python": PYTHON["non-tail 50,000 deep"],
    },
    "lines through a stage": {
        "ral": "seq 1 200000 | map-lines { |l| \"> $l\" } | tail -n 1",
        "bash": "seq 1 200000 | while read -r l; do echo \"> $l\"; done | tail -n 1",
        "dash": "seq 1 200000 | while read -r l; do echo \"> $l\"; done | tail -n 1",
        "zsh": "seq 1 200000 | while read -r l; do echo \"> $l\"; done | tail -n 1",
        "fish": "seq 1 200000 | while read -l l; echo \"> $l\"; end | tail -n 1",
    },
}  # fmt: skip

TARGETS = {
    "start-up": ("python", 2.0),
    "1,000 externals": ("bash", 0.95),
    "fib 22": ("python", 3.0),
    "tail loop 1,000,000": ("python", 3.0),
    "map 1,000,000": ("python", 2.5),
    "fold 1,000,000": ("python", 2.5),
}
COMPUTE = (
    "fib 22",
    "tail loop 1,000,000",
    "map 1,000,000",
    "fold 1,000,000",
    "even/odd 1,000,000",
    "non-tail 50,000 deep",
)


def command(shell: str, program: str) -> list[str] | None:
    """How a program is run; None when the shell is not there."""
    if shell == "ral":
        return [RAL, "-c", program]
    if shell == "python":
        return [PY, "-I", "-S", "-c", program]
    path = shutil.which(shell) or shutil.which(shell, path=str(Path(sys.executable).parent))
    if path is None:
        return None
    flags = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["-N"], "xonsh": ["--no-rc"]}.get(shell, [])
    return [path, *flags, "-c", program]


def run_once(argv: list[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    took = time.perf_counter() - start
    return took if done.returncode == 0 else float("nan")


def table(name: str, rounds: int) -> tuple[dict[str, float], dict[str, float]]:
    """Medians in ms and ratios to each peer (ral over peer)."""
    commands = {s: c for s, p in PROGRAMS[name].items() if (c := command(s, p)) is not None}
    slow = {"map 1,000,000", "fold 1,000,000", "fib 22", "tail loop 1,000,000"}
    times: dict[str, list[float]] = {s: [] for s in commands}
    for number in range(rounds):
        order = list(commands)
        random.shuffle(order)
        for shell in order:
            if shell in ("bash", "dash", "zsh", "fish", "xonsh") and name in slow and number >= 3:
                times[shell].append(times[shell][number % 3])  # seconds long: three runs are enough
                continue
            times[shell].append(run_once(commands[shell]))
    medians = {s: statistics.median(t) * 1000 for s, t in times.items()}
    base = PROGRAMS["start-up"] and times["ral"]
    ratios = {
        s: statistics.median([a / b for a, b in zip(base, t, strict=True)]) for s, t in times.items() if s != "ral"
    }
    return medians, ratios


def latency(argv: list[str], sig: int, ready: str, runs: int) -> list[float]:
    """Milliseconds from a signal to the end of a process that has said it is ready."""
    found: list[float] = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            flag = os.path.join(folder, "ready")
            words = [w.replace(ready, flag) for w in argv]
            process = subprocess.Popen(
                words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
            )
            while not os.path.exists(flag):
                time.sleep(0.002)
            time.sleep(0.02)
            start = time.perf_counter()
            os.kill(process.pid, sig)
            process.wait()
            found.append((time.perf_counter() - start) * 1000)
    return found


def prompt_latency(runs: int) -> list[float] | None:
    """Milliseconds from Ctrl-C over a busy loop to the next prompt's first bytes, on a terminal."""
    try:
        import pexpect
    except ImportError:
        return None
    home = tempfile.mkdtemp()
    env = {**os.environ, "HOME": home, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    child = pexpect.spawn(RAL, env=env, timeout=20, dimensions=(24, 80))
    child.delaybeforesend = None
    child.expect("❯".encode())
    child.send("let go = { |n| go $[$n + 1] }\r")
    child.expect("❯".encode())
    found: list[float] = []
    for _ in range(runs):
        child.send('echo "ready-$[1 + 1]"; go 0\r')
        child.expect(b"ready-2\r\n")
        time.sleep(0.05)
        start = time.perf_counter()
        child.send("\x03")
        child.expect(b"interrupted")
        found.append((time.perf_counter() - start) * 1000)
        child.expect("❯".encode())
        time.sleep(0.02)
    child.close(force=True)
    shutil.rmtree(home, ignore_errors=True)
    return found


def machine() -> str:
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    return f"{os.cpu_count()} cores, {model}, Linux {platform.release()}, Python {platform.python_version()}"


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background starts with it ignored
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--only", action="append")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--png", type=Path)
    options = parser.parse_args()
    missing = [s for s in INSTALL if command(s, "") is None]
    shells = ["ral", "python", "bash", "dash", "zsh", "fish", "xonsh"]
    shells = [s for s in shells if s not in missing]
    lines = [
        "| program | " + " | ".join(shells) + " | ral / python | ral / bash | target |",
        "|---|" + "---:|" * (len(shells) + 3),
    ]
    results: dict[str, dict[str, float]] = {}
    version = subprocess.run([RAL, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{version}; {machine()}", file=sys.stderr)
    for name in PROGRAMS:
        if options.only and name not in options.only:
            continue
        medians, ratios = table(name, 41 if name == "start-up" else options.rounds)
        results[name] = medians
        cells = [f"{medians[s]:.1f}" if s in medians else "–" for s in shells]
        target = TARGETS.get(name)
        note = (
            f"≤ {target[1]} × {target[0]}"
            if target
            else ("≤ 1/15 × bash" if name in COMPUTE and "bash" in ratios else "")
        )
        cells += [f"{ratios[s]:.2f}" if s in ratios else "–" for s in ("python", "bash")] + [note]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
        print(lines[-1], file=sys.stderr)
    lines.append("")
    if not options.only:
        lines += latencies()
    for shell in missing:
        lines.append(f"{shell} was not installed: {INSTALL[shell]}")
    text = f"{version}; {machine()}. Milliseconds, medians of whole processes; ratios are medians of the rounds' ratios.\n\n"
    text += "\n".join(lines) + "\n"
    print(text)
    if options.markdown:
        options.markdown.write_text(text)
    if options.png:
        draw(results, options.png)


def latencies() -> list[str]:
    lines = ["| what | median ms | worst ms | runs |", "|---|---:|---:|---:|"]
    busy = [RAL, "-c", "let go = { |n| go $[$n + 1] }\necho > READY\ngo 0"]
    child = [RAL, "-c", "echo > READY\nsleep 60"]
    bash_child = ["bash", "-c", "echo > READY; sleep 60"]
    rows = [
        ("SIGINT to the end, busy loop", latency(busy, signal.SIGINT, "READY", 40)),
        ("SIGTERM to exit 143, busy loop", latency(busy, signal.SIGTERM, "READY", 40)),
        ("SIGTERM to exit 143, obedient child", latency(child, signal.SIGTERM, "READY", 40)),
        ("the same signal, bash and its orphan left behind", latency(bash_child, signal.SIGTERM, "READY", 20)),
    ]
    prompt = prompt_latency(40)
    if prompt is not None:
        rows.append(("Ctrl-C over a busy loop to the REPL's answer", prompt))
    for what, times in rows:
        lines.append(f"| {what} | {statistics.median(times):.1f} | {max(times):.1f} | {len(times)} |")
    return [*lines, ""]


def draw(results: dict[str, dict[str, float]], path: Path) -> None:
    """Bars of the medians relative to ral, on a logarithmic axis."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print("no picture: pip install matplotlib", file=sys.stderr)
        return
    shells = ["ral", "python", "bash", "dash", "zsh", "fish", "xonsh"]
    names = list(results)
    figure, axes = pyplot.subplots(figsize=(10, 0.75 * len(names) + 1.5))
    height = 0.8 / len(shells)
    for i, shell in enumerate(shells):
        ys = [n + i * height for n, name in enumerate(names) if shell in results[name]]
        xs = [results[name][shell] / results[name]["ral"] for name in names if shell in results[name]]
        if xs:
            axes.barh(ys, xs, height, label=shell)
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.6)
    axes.set_yticks([n + 0.4 for n in range(len(names))], names)
    axes.invert_yaxis()
    axes.set_xlabel("time relative to ral (left is faster)")
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
