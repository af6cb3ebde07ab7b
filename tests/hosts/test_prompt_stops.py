"""Every gesture at the prompt over every kind of work, on a real terminal: answer or status, time, survivors, modes."""

import os
import signal
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from support import RAL, Mark, until

PROMPT = "❯"
CTRL_C, CTRL_BACKSLASH, CTRL_Z, CTRL_D = "\x03", "\x1c", "\x1a", "\x04"
LOOP = "let go = { |n| go $[$n + 1] }; "
STUB = "sh -c 'trap \"\" INT TERM; while :; do sleep 1; done'"

# a line to type, and what shows that it runs: a word that it prints, or the command line of a `sleep`
WORK = {
    "external": ("sleep 3171; echo no", "sleep 3171"),
    "loop": (LOOP + 'echo "run-$[1 + 1]"; go 0', "run-2\r\n"),
    "pipeline": ("sleep 3171 | cat | cat", "sleep 3171"),
    "mixed": ("sh -c 'echo run-$((1+1)); while :; do echo h; sleep 1; done' | each-line { |l| warn $l }", "run-2\r\n"),
    "ral stage": (LOOP + '^true | !{ warn "run-$[1 + 1]"; go 0; echo x }', "run-2\r\n"),
    "capture": ("let x = sleep 3171; echo no", "sleep 3171"),
    "await": ('let h = spawn { sleep 3171 }; echo "run-$[1 + 1]"; let r = await $h', "run-2\r\n"),
    "par": ("let xs = par { |n| sleep 3171 } [1, 2, 3] 3", "sleep 3171"),
    "guard": ('guard { sleep 3171 } { warn "tidy" }', "sleep 3171"),
}


class Prompt:
    """A shell on a terminal of its own."""

    def __init__(self, home: Path, *, ignore_hangup: bool = False) -> None:
        self.mark = Mark()
        env = {**os.environ, **self.mark.env(), "HOME": str(home), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
        self.child = pexpect.spawn(
            RAL[0], RAL[1:], env=env, timeout=10, dimensions=(24, 200), encoding="utf-8", ignore_sighup=ignore_hangup
        )
        self.child.delaybeforesend = None
        self.modes = termios.tcgetattr(self.child.child_fd)
        self.number = 10
        try:
            self.child.expect(PROMPT)
        except pexpect.ExceptionPexpect:
            self.child.close(force=True)
            raise

    def type(self, line: str) -> None:
        self.child.send(line + "\r")

    def wait_for(self, words: str) -> None:
        if words.startswith("sleep"):
            until(lambda: words in " ".join(self.sleeps()))
        else:
            self.child.expect_exact(words)

    def holder(self, *, shell: bool) -> None:
        """Until the terminal's foreground is the shell's own group, or another one."""
        until(lambda: (os.tcgetpgrp(self.child.child_fd) == self.child.pid) is shell)

    def sleeps(self) -> list[str]:
        found = []
        for carrier in self.mark.carriers():
            pid, name = carrier.split(maxsplit=1)
            if name == "sleep":
                try:
                    found.append(Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "))
                except OSError:
                    continue
        return found

    def run(self, name: str) -> None:
        line, shown = WORK[name]
        self.type(line)
        self.wait_for(shown)
        self.holder(shell=name in ("loop", "ral stage", "await", "par"))

    def answers(self) -> None:
        """The next command runs, untouched, and its answer comes."""
        self.number += 1
        self.type(f'echo "ok-$[1 + {self.number}]"')
        self.child.expect_exact(f"ok-{self.number + 1}\r\n")
        self.child.expect(PROMPT)

    def ends(self, status: int) -> None:
        """The shell ends with a status, and the terminal is as it was."""
        self.child.expect(pexpect.EOF)
        self.child.close()
        assert (self.child.exitstatus, self.child.signalstatus) == (status, None)

    def only_shell_left(self) -> None:
        until(
            lambda: (
                self.mark.carriers() == [] or all(int(c.split()[0]) == self.child.pid for c in self.mark.carriers())
            ),
            5,
        )


@pytest.fixture
def prompt(tmp_path: Path) -> Iterator[Prompt]:
    p = Prompt(tmp_path)
    yield p
    p.child.close(force=True)
    until(lambda: not p.mark.carriers(), 5)


@pytest.mark.parametrize("name", WORK)
def test_ctrl_c_ends_the_turn_and_not_the_shell(name: str, prompt: Prompt) -> None:
    prompt.run(name)
    start = time.monotonic()
    prompt.child.send(CTRL_C)
    prompt.child.expect_exact("ral: interrupted")
    assert time.monotonic() - start < 2
    prompt.answers()
    if name != "await":  # the worker is the session's, not the turn's
        prompt.only_shell_left()
    prompt.child.send(CTRL_D)
    if name == "await":
        prompt.child.expect_exact("[w0] running")
        prompt.child.expect(PROMPT)
        prompt.child.send(CTRL_D)
    prompt.ends(0)


@pytest.mark.parametrize("name", WORK)
def test_ctrl_backslash_ends_everything(name: str, prompt: Prompt) -> None:
    prompt.run(name)
    prompt.child.send(CTRL_BACKSLASH)
    prompt.ends(130)
    until(lambda: not prompt.mark.carriers(), 3)


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGHUP], ids=["TERM", "HUP"])
@pytest.mark.parametrize("name", [*WORK, "idle", "half a line"])
def test_terminate_unwinds_the_session(name: str, sig: signal.Signals, prompt: Prompt) -> None:
    if name in WORK:
        prompt.run(name)
    elif name == "half a line":
        prompt.child.send("echo half")
        prompt.child.expect_exact("half")
    else:
        prompt.answers()
    os.kill(prompt.child.pid, sig)
    prompt.ends(143)
    until(lambda: not prompt.mark.carriers(), 3)


def test_at_the_prompt_keys_touch_nothing(prompt: Prompt) -> None:
    prompt.child.send("echo half")
    prompt.child.expect_exact("half")
    prompt.child.send(CTRL_C)
    prompt.child.expect(PROMPT)
    prompt.answers()
    prompt.child.send(CTRL_BACKSLASH + CTRL_Z)
    prompt.answers()


def test_ten_quick_ctrl_c_end_one_turn(prompt: Prompt) -> None:
    prompt.run("loop")
    prompt.child.send(CTRL_C * 10)
    prompt.child.expect_exact("ral: interrupted")
    prompt.child.expect(PROMPT)
    prompt.answers()
    prompt.answers()


def test_a_child_that_obeys_nothing_costs_the_grace(prompt: Prompt) -> None:
    prompt.type(LOOP + "within [timeout: 0.2] { " + STUB + " }")
    start = time.monotonic()
    prompt.child.expect_exact("timed out")
    assert 0.6 < time.monotonic() - start < 4
    prompt.answers()
    prompt.only_shell_left()


def test_a_child_that_catches_ctrl_c_is_left_alone(prompt: Prompt) -> None:
    prompt.type("sh -c 'trap \"echo caught; exit 7\" INT; echo run-$((1+1)); while :; do sleep 0.1; done'; echo no")
    prompt.wait_for("run-2\r\n")
    prompt.holder(shell=False)
    prompt.child.send(CTRL_C)
    prompt.child.expect_exact("exited with status 7")
    prompt.answers()


def test_the_last_external_decides_about_the_key(prompt: Prompt) -> None:
    prompt.type('sleep 3171 | sh -c \'trap "exit 0" INT; echo run-$((1+1)); cat; sleep 0.1\'; echo "on-$[1 + 1]"')
    prompt.wait_for("run-2\r\n")
    prompt.holder(shell=False)
    prompt.child.send(CTRL_C)
    prompt.child.expect_exact("on-2\r\n")
    prompt.answers()


def test_parking(prompt: Prompt) -> None:
    prompt.type('sleep 3171; echo "no-$[1 + 1]"')
    prompt.wait_for("sleep 3171")
    prompt.holder(shell=False)
    prompt.child.send(CTRL_Z)
    prompt.child.expect_exact("[1] stopped  sleep 3171   (rest of the line dropped)")
    prompt.answers()
    prompt.type("sleep 3172 | cat")
    prompt.wait_for("sleep 3172")
    prompt.holder(shell=False)
    prompt.child.send(CTRL_Z)
    prompt.child.expect_exact("[2] stopped  sleep 3172 | cat")
    prompt.child.expect(PROMPT)
    prompt.type("bg 2; jobs")
    prompt.child.expect_exact("[1] stopped  sleep 3171\r\n[2] running  sleep 3172 | cat\r\n")
    prompt.child.expect(PROMPT)
    prompt.type("fg 1")
    prompt.child.expect_exact("sleep 3171\r\n")
    prompt.holder(shell=False)
    prompt.child.send(CTRL_C)
    prompt.child.expect_exact("ral: interrupted")
    prompt.answers()
    prompt.type("end 2; jobs")
    prompt.child.expect(PROMPT)
    prompt.answers()
    prompt.only_shell_left()


def test_disown_lets_go(prompt: Prompt) -> None:
    prompt.type("sleep 3171")
    prompt.wait_for("sleep 3171")
    prompt.holder(shell=False)
    prompt.child.send(CTRL_Z)
    prompt.child.expect_exact("[1] stopped")
    prompt.child.expect(PROMPT)
    prompt.type("disown 1")
    prompt.answers()
    pid = next(int(c.split()[0]) for c in prompt.mark.carriers() if c.endswith("sleep"))
    prompt.child.send(CTRL_D)
    until(lambda: not prompt.child.isalive())
    os.kill(pid, signal.SIGKILL)  # it survived the shell


def test_leaving_names_parked_jobs_once_and_ends_them(prompt: Prompt) -> None:
    prompt.type("sleep 3171")
    prompt.wait_for("sleep 3171")
    prompt.holder(shell=False)
    prompt.child.send(CTRL_Z)
    prompt.child.expect_exact("[1] stopped")
    prompt.child.expect(PROMPT)
    prompt.child.send(CTRL_D)
    prompt.child.expect_exact("[1] stopped  sleep 3171")
    prompt.child.expect(PROMPT)
    prompt.child.send(CTRL_D)
    prompt.ends(0)
    until(lambda: not prompt.mark.carriers(), 3)


@pytest.mark.parametrize(
    "form",
    ["let x = %s", "guard { %s } { () }", "within [timeout: 20] { %s }"],
    ids=["capture", "guard", "timeout"],
)
def test_where_a_job_cannot_be_parked_it_is_resumed(form: str, prompt: Prompt) -> None:
    prompt.type((form % "sh -c 'kill -STOP $$; echo went-$((1+1)) >&2'") + '; echo "on-$[1 + 1]"')
    prompt.child.expect_exact("went-2")
    prompt.child.expect_exact("on-2\r\n")
    prompt.answers()


def test_a_worker_that_wants_the_terminal_is_told(prompt: Prompt) -> None:
    prompt.type("let h = spawn { sh -c 'read x < /dev/tty' }; let r = await $h")
    prompt.child.expect_exact("needs the terminal")
    prompt.answers()
    prompt.only_shell_left()


def test_a_program_reads_the_terminal_while_its_input_is_a_pipe(prompt: Prompt) -> None:
    prompt.type("echo data | sh -c 'read a; echo run-$((1+1)); read b < /dev/tty; echo got-$a-$b'")
    prompt.child.expect_exact("run-2\r\n")
    prompt.child.send("typed\r")
    prompt.child.expect_exact("got-data-typed")
    prompt.answers()


def test_modes_that_a_dead_job_left_are_put_right(prompt: Prompt) -> None:
    arm = r'printf "\033[?1003h\033[?1006h\033[?1049h\033[?2004h\033[?25l"'
    prompt.type(f"sh -c 'stty -echo -icanon; {arm}; echo run-$((1+1)); kill -9 $$'")
    prompt.child.expect_exact("run-2")
    for off in ("\x1b[?1003l", "\x1b[?1006l", "\x1b[?1049l", "\x1b[?25h"):
        prompt.child.expect_exact(off)
    prompt.answers()
    prompt.type("stty -a")
    prompt.child.expect("[^-]icanon")
    prompt.child.expect("[^-]echo ")


def test_no_off_sequence_without_need(prompt: Prompt) -> None:
    prompt.type("sh -c 'exit 3'")
    prompt.child.expect_exact("exited with status 3")
    assert "1049l" not in prompt.child.before
    prompt.child.expect(PROMPT)
    assert "1049l" not in prompt.child.before


def test_the_modes_at_the_end_are_those_of_the_start(tmp_path: Path) -> None:
    prompt = Prompt(tmp_path)
    slave = os.open(os.readlink(f"/proc/{prompt.child.pid}/fd/0"), os.O_RDWR | os.O_NOCTTY)
    try:
        before = prompt.modes
        prompt.run("pipeline")
        prompt.child.send(CTRL_C)
        prompt.child.expect_exact("interrupted")
        prompt.answers()
        prompt.child.send(CTRL_D)
        until(lambda: not prompt.child.isalive())
        assert termios.tcgetattr(slave)[:6] == before[:6]
    finally:
        os.close(slave)
        prompt.child.close(force=True)


def test_a_dead_terminal_ends_the_shell(tmp_path: Path) -> None:
    """SIGHUP is ignored, so only the end of input tells; the shell must not spin on it."""
    prompt = Prompt(tmp_path, ignore_hangup=True)
    pid = prompt.child.pid
    os.close(prompt.child.child_fd)
    prompt.child.child_fd = -1
    prompt.child.closed = True
    try:
        until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z", 8)
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        assert int(ticks[11]) + int(ticks[12]) < 3 * os.sysconf("SC_CLK_TCK")
    finally:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(pid, 0)


def test_history_and_multi_line_entries(prompt: Prompt, tmp_path: Path) -> None:
    prompt.child.send("let f = { |x|\r")
    prompt.child.expect("…")
    prompt.child.send('echo "f-$x" }\r')
    prompt.child.expect(PROMPT)
    prompt.type("f 7")
    prompt.child.expect_exact("f-7\r\n")
    prompt.child.expect(PROMPT)
    prompt.type("[a: 1, b: 'x y']")
    prompt.child.expect_exact("=> [a: 1, b: 'x y']")
    assert "f 7" in (tmp_path / ".config/ral/history").read_text()


def test_a_paste_runs_line_by_line_only_when_entered(prompt: Prompt) -> None:
    prompt.child.send("\x1b[200~echo one\necho two\x1b[201~")
    prompt.child.expect_exact("two")
    prompt.child.send("\r")
    prompt.child.expect_exact("one\r\ntwo\r\n")
    prompt.answers()


def test_resizing_disturbs_nothing(prompt: Prompt) -> None:
    prompt.type("let x = sh -c 'sleep 0.5; echo done'; echo \"x-$x\"")
    for rows in range(20, 40):
        prompt.child.setwinsize(rows, 100 + rows)
    prompt.child.expect_exact("x-done\r\n")
    prompt.answers()
