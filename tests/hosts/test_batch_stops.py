"""Every signal over every kind of work in batch, to the pid alone and to the whole group: status, time, survivors, words."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from support import RAL, Mark, until

INT, TERM, HUP, QUIT = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT
STATUS = {INT: 130, TERM: 143, HUP: 143, QUIT: 130}
READY = "echo > READY; "
LOOP = "let go = { |n| go $[$n + 1] }; "
STUB = "sh -c 'trap \"\" INT TERM; while :; do sleep 1; done'"

WORK = {
    "external": "sleep 3171",
    "loop": LOOP + READY + "go 0",
    "pipeline": "sleep 3171 | sleep 3172 | cat",
    "mixed": "sh -c 'while :; do echo h; sleep 1; done' | each-line { |l| () }",
    "ral stage": LOOP + READY + "^true | !{ go 0; echo x }",
    "capture": "let x = sleep 3171",
    "await": "let h = spawn { sleep 3171 }; let r = await $h",
    "par": "par { |n| sleep 3171 } [1, 2, 3, 4] 4",
    "handler": "within [handlers: [zz: { |a| sleep 3171 }]] { zz }",
    "try": "try { sleep 3171 } { |e| () }",
    "choose": "sleep 3171 ? echo no",
    "nested": " ".join(RAL) + " -c 'sleep 3171; echo after'",
}


class Run:
    """A batch run in a session of its own, its children marked."""

    def __init__(self, program: str, folder: Path, *, floor: str = "", ignore: Sequence[int] = ()) -> None:
        self.mark = Mark()
        self.ready = folder / "READY"

        def prepare() -> None:
            for number in ignore:
                signal.signal(number, signal.SIG_IGN)

        self.process = subprocess.Popen(
            [*RAL, "-c", program + "\necho after"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            cwd=folder,
            env={**os.environ, **self.mark.env(), **({"RAL_FLOOR": floor} if floor else {})},
            start_new_session=True,
            preexec_fn=prepare if ignore else None,  # noqa: PLW1509
        )
        self.out = b""
        self.err = b""

    def wait_for(self, words: str) -> None:
        """Until a marked `sleep` with this command line lives."""
        until(lambda: any(words in line for line in self.lines()))

    def lines(self) -> list[str]:
        found = []
        for carrier in self.mark.carriers():
            pid, name = carrier.split(maxsplit=1)
            if name == "sleep":  # not ral, whose command line holds the program
                try:
                    found.append(Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "))
                except OSError:
                    continue
        return found

    def send(self, *signals: int | float, group: bool = False) -> float:
        """Send signals (a float is a pause); seconds until the end."""
        start = time.monotonic()
        for item in signals:
            if isinstance(item, float):
                time.sleep(item)
                continue
            try:
                (os.killpg if group else os.kill)(self.process.pid, item)
            except ProcessLookupError:
                break
        self.out, self.err = self.process.communicate(timeout=30)
        return time.monotonic() - start

    def clean(self) -> None:
        until(lambda: not self.mark.carriers(), 3)
        assert b"after" not in self.out
        assert b"Traceback" not in self.err


@pytest.fixture
def runs() -> Iterator[list[Run]]:
    started: list[Run] = []
    yield started
    for run in started:
        if run.process.poll() is None:
            run.process.kill()
        run.process.communicate()


def begin(name: str, folder: Path, runs: list[Run], floor: str = "") -> Run:
    program = WORK[name]
    run = Run(program, folder, floor=floor)
    runs.append(run)
    if "READY" in program:
        until(run.ready.exists)
    else:
        run.wait_for("sleep 1" if name == "mixed" else "sleep 3171")
    return run


@pytest.mark.parametrize("group", [False, True], ids=["pid", "group"])
@pytest.mark.parametrize("sig", [INT, TERM, HUP, QUIT], ids=["INT", "TERM", "HUP", "QUIT"])
@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("floor", ["", "python"], ids=["floor", "twin"])
def test_a_signal_stops_it(
    floor: str, name: str, sig: signal.Signals, group: bool, tmp_path: Path, runs: list[Run]
) -> None:
    run = begin(name, tmp_path, runs, floor)
    took = run.send(sig, group=group)
    assert run.process.returncode == STATUS[sig], run.err.decode()
    assert took < 2
    run.clean()


@pytest.mark.parametrize("sig", [INT, TERM], ids=["INT", "TERM"])
@pytest.mark.parametrize("program", [STUB, "let x = " + STUB, STUB + " | cat", STUB + " &\nsleep 3171"])
def test_what_obeys_nothing_is_killed_after_the_grace(
    program: str, sig: signal.Signals, tmp_path: Path, runs: list[Run]
) -> None:
    run = Run(program, tmp_path)
    runs.append(run)
    run.wait_for("sleep 1")
    took = run.send(sig)
    assert run.process.returncode == STATUS[sig]
    assert 0.45 < took < 2.5
    run.clean()


def test_the_grace_can_be_set(tmp_path: Path, runs: list[Run]) -> None:
    run = Run("within [grace: 1.2] { " + STUB + " }", tmp_path)
    runs.append(run)
    run.wait_for("sleep 1")
    assert 1.1 < run.send(TERM) < 3
    run.clean()


@pytest.mark.parametrize(
    "program",
    [
        "sh -c 'setsid sleep 3171 & sleep 3172'",
        "sh -c '(setsid sh -c \"sleep 3171 & sleep 3171\" &) ; sleep 3172'",
        "sh -c 'sleep 3171 & wait'",
        "sh -c 'kill -STOP $$; sleep 3171' | sleep 3171",
        "sleep 3171 &\nsleep 3172",
    ],
)
def test_no_escape(program: str, tmp_path: Path, runs: list[Run]) -> None:
    run = Run(program, tmp_path)
    runs.append(run)
    run.wait_for("sleep 317")
    took = run.send(TERM)
    assert run.process.returncode == 143
    assert took < 3
    run.clean()


@pytest.mark.parametrize("signals", [(INT,), (TERM,), (TERM, 0.1, TERM)], ids=["INT", "TERM", "TERM-TERM"])
def test_a_cleanup_runs_to_its_end(signals: tuple[int | float, ...], tmp_path: Path, runs: list[Run]) -> None:
    run = Run("guard { sleep 3171 } { sleep 0.3; echo done > F }", tmp_path)
    runs.append(run)
    run.wait_for("sleep 3171")
    took = run.send(*signals)
    assert run.process.returncode == STATUS[signals[0]]  # type: ignore[index]
    assert (tmp_path / "F").read_text() == "done\n"
    assert took < 2.5
    run.clean()


def test_an_abort_skips_cleanups(tmp_path: Path, runs: list[Run]) -> None:
    run = Run("guard { sleep 3171 } { echo done > F }", tmp_path)
    runs.append(run)
    run.wait_for("sleep 3171")
    run.send(QUIT)
    assert not (tmp_path / "F").exists()
    run.clean()


def test_the_third_gesture_ends_it_at_once(tmp_path: Path, runs: list[Run]) -> None:
    run = Run("guard { sleep 3171 } { " + STUB + " }", tmp_path)
    runs.append(run)
    run.wait_for("sleep 3171")
    took = run.send(TERM, 0.1, TERM, 0.1, TERM)
    assert run.process.returncode == 143
    assert took < 0.45
    run.clean()


def test_signals_closer_than_15_ms_are_one_gesture(tmp_path: Path, runs: list[Run]) -> None:
    run = Run("guard { sleep 3171 } { sleep 0.3; echo done > F }", tmp_path)
    runs.append(run)
    run.wait_for("sleep 3171")
    run.send(TERM, TERM, TERM, TERM)
    assert run.process.returncode == 143
    assert (tmp_path / "F").exists()
    run.clean()


def test_a_repeated_signal_shortens_a_cleanup(tmp_path: Path, runs: list[Run]) -> None:
    run = Run("guard { sleep 3171 } { sleep 30 }", tmp_path)
    runs.append(run)
    run.wait_for("sleep 3171")
    took = run.send(INT, 0.2, INT)
    assert run.process.returncode == 130
    assert took < 2.5
    run.clean()


def test_what_was_ignored_stays_ignored(tmp_path: Path, runs: list[Run]) -> None:
    run = Run("sleep 3171", tmp_path, ignore=(HUP, INT))
    runs.append(run)
    run.wait_for("sleep 3171")
    os.kill(run.process.pid, HUP)
    os.kill(run.process.pid, INT)
    assert run.send(0.2, TERM) < 2
    assert run.process.returncode == 143
    run.clean()


def test_a_stop_between_two_commands_runs_no_second_one(tmp_path: Path, runs: list[Run]) -> None:
    run = Run("sleep 3171; echo x > F", tmp_path)
    runs.append(run)
    run.wait_for("sleep 3171")
    run.send(INT, group=True)
    assert not (tmp_path / "F").exists()
    run.clean()


def test_spawning_and_stopping_race(tmp_path: Path, runs: list[Run]) -> None:
    """A stop at any moment of a launch finds everything that was started."""
    for number in range(25):
        run = Run("sleep 3171 | sleep 3172 | sleep 3173", tmp_path)
        runs.append(run)
        until(lambda run=run: run.mark.carriers() or run.process.poll() is not None)  # type: ignore[misc]
        run.send(number * 0.004, TERM)
        assert run.process.returncode in (143, -15)  # -15: before the launcher or ral could answer, silently
        assert run.err in (b"ral: terminated\n", b"")
        run.clean()


@pytest.mark.parametrize("program", ["sleep 3171 &", STUB + " &", "let h = watch 'w' { sleep 3171 }"])
def test_the_end_of_a_run_ends_its_workers(program: str, tmp_path: Path) -> None:
    mark = Mark()
    done = subprocess.run(
        [*RAL, "-c", program + "\nsleep 0.2; echo end"],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, **mark.env()},
    )
    assert (done.returncode, done.stdout) == (0, b"end\n")
    until(lambda: not mark.carriers(), 3)


@pytest.mark.parametrize(
    "program",
    [
        "sort-list !{map { |n| $[($n * 7919) % 1000003] } !{range 0 3000000}}",
        "re-match '(a+)+$' 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'",
        "each { |n| echo x } !{range 0 100000000}",
        "fold { |a n| $[$a + $n] } 0 !{range 0 30000000}",
        "seq 1 1000000000 | fold-lines { |a l| $[$a + 1] } 0",
    ],
    ids=["sort", "regex", "each", "fold", "lines"],
)
def test_builtins_hear_a_stop(program: str, tmp_path: Path, runs: list[Run]) -> None:
    run = Run("echo > READY\nlet x = { " + program + " }\nlet y = !$x", tmp_path)
    runs.append(run)
    until(run.ready.exists)
    took = run.send(0.5, INT)
    assert run.process.returncode == 130
    assert took < 3
    run.clean()


def unshare_works() -> bool:
    done = subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.skipif(not unshare_works(), reason="no PID namespaces here")
@pytest.mark.parametrize(("sig", "status"), [(TERM, 143), (INT, 130)], ids=["TERM", "INT"])
def test_the_first_process_of_a_container(sig: signal.Signals, status: int, tmp_path: Path) -> None:
    mark = Mark()
    process = subprocess.Popen(
        [
            "unshare",
            "--pid",
            "--fork",
            "--kill-child",
            *RAL,
            "-c",
            "sh -c 'setsid sleep 3171 &'; sleep 3172; echo after",
        ],
        stdout=subprocess.PIPE,
        env={**os.environ, **mark.env()},
    )
    until(lambda: sum("sleep" in c for c in mark.carriers()) == 2)
    first = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0]
    start = time.monotonic()
    os.kill(int(first), sig)
    out, _ = process.communicate(timeout=20)
    assert (process.returncode, out) == (status, b"")
    assert time.monotonic() - start < 2
    until(lambda: not mark.carriers(), 3)
