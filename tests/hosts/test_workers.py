"""Workers and `par`: results, order, limits, and nothing left."""

from support import Mark, code, until


def test_par_keeps_order_and_a_limit() -> None:
    done = code("echo !{par { |n| sh -c 'sleep 0.01'; return $[$n * $n] } !{range 0 40} 8}")
    assert done.stdout.decode() == "[" + ", ".join(str(n * n) for n in range(40)) + "]\n"


def test_par_fails_as_a_whole() -> None:
    mark = Mark()
    program = "par { |n| if $[$n == 3] { fail [status: 9, message: 'item'] } else { sleep 60 } } !{range 0 6} 6"
    done = code(program, env=mark.env())
    assert done.returncode == 9
    assert b"item" in done.stderr
    until(lambda: not mark.carriers())


def test_a_worker_has_an_empty_input_and_no_terminal() -> None:
    done = code("let h = spawn { cat; echo end }; let r = await $h; to-bytes $r[stdout]", stdin=b"not for it\n")
    assert done.stdout == b"end\n"


def test_race_cancels_the_losers() -> None:
    mark = Mark()
    program = "let a = spawn { sleep 60; return 'lost' }; let b = spawn { return 'won' }; let r = race [$a, $b]; echo $r[value]"
    done = code(program, env=mark.env())
    assert done.stdout == b"won\n"
    until(lambda: not mark.carriers())


def test_a_cancelled_handle() -> None:
    program = 'let h = spawn { sleep 60 }; cancel $h; try { let r = await $h } { |e| echo "$e[message] $e[status]" }'
    assert code(program).stdout == b"handle is cancelled 130\n"


def test_output_buffers_are_bounded_and_drained() -> None:
    done = code("let h = spawn { head -c 20000000 /dev/zero }; let r = await $h; echo !{length $r[stdout]}")
    assert 16 * 1024 * 1024 < int(done.stdout) < 16 * 1024 * 1024 + 200


def test_watch_labels_whole_lines() -> None:
    done = code(
        "let h = watch 'w' { sh -c 'echo a; printf b; echo e >&2' }; let r = await $h; echo !{length $r[stdout]}"
    )
    assert done.stdout == b"[w] a\n[w] b\n0\n"
    assert done.stderr == b"[w:err] e\n"


def test_a_deadline_reaches_every_kind_of_work() -> None:
    loop = "let go = { |n| go $[$n + 1] }; "
    for body in (
        "sleep 60",
        "let x = sleep 60",
        "go 0",
        "sleep 60 | cat",
        "let r = await $h",
        "let xs = par { |n| sleep 60 } [1, 2] 2",
    ):
        program = (
            loop + "let h = spawn { sleep 60 }; try { within [timeout: 0.2] { " + body + " } } { |e| echo $e[message] }"
        )
        assert code(program).stdout == b"timed out\n", body
