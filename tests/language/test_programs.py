"""Programs that one line of a case can't hold: limits, evaluation order, recursive types, long chains."""

import pytest

from support import code


def out(program: str, *args: str) -> str:
    done = code(program, *args)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("echo $[" + " + ".join(["1"] * 10_000) + "]", "10000\n"),
        ("let x = true; echo $[" + " && ".join(["$x"] * 3000) + "]", "true\n"),
        ("let f = { |n| $n }; echo $[" + " + ".join(["!{f 1}"] * 1500) + "]", "1500\n"),
        ("^false" + " ? ^false" * 100 + " ? echo ok", "ok\n"),
        ("echo hi" + " | cat" * 40, "hi\n"),
        ("echo !{length [" + "1," * 30_000 + "]}", "30000\n"),
        (
            "let f = { |b| $b }; if !{f false} { echo a }"
            + " elsif !{ let y = f false; return $y } { echo b }" * 150
            + " else { echo c }",
            "c\n",
        ),
        ("!{" * 64 + "echo deep" + "}" * 64, "deep\n"),
        ("let x = !{ " * 60 + "echo deep" + " }; echo $x" * 60, "deep\n"),
        ("try { " * 32 + "echo deep" + " } { |_| echo no }" * 32, "deep\n"),
    ],
    ids=["sum", "and", "calls", "choose", "pipes", "list", "elsif", "force", "capture", "try"],
)
def test_long_and_deep_programs(program: str, expected: str) -> None:
    assert out(program) == expected


def test_closures_of_a_loop_keep_their_own_values() -> None:
    program = """
        let go = { |n acc|
          if $[$n == 0] { return $acc } else { let f = { |x| $[$x + $n] }; go $[$n - 1] [...$acc, $f] }
        }
        echo ...!{map { |f| f 10 } !{go 3 []}}
    """
    assert out(program) == "13 12 11\n"


def test_a_function_that_is_computed_is_computed_once() -> None:
    program = 'let mk = { |p| warn made; return { |x| echo "$p$x" } }; echo ...!{map !{mk a} [1, 2, 3]}'
    done = code(program)
    assert (done.stdout, done.stderr) == (b"a1 a2 a3\n", b"made\n")


def test_partial_and_over_application() -> None:
    program = """
        let add4 = { |a b c d| $[$a + $b + $c + $d] }
        let p = add4 1 2
        let mk = { |a| return { |b| $[$a + $b] } }
        echo !{p 3 4} !{!{p 3} 4} !{mk 1 2} !{!{mk 1} 2}
    """
    assert out(program) == "10 10 3 3\n"


def test_recursive_types() -> None:
    program = """
        let sum = { |t| case $t [
          `leaf: { |n| return $n },
          `node: { |[l, r]| return $[!{sum $l} + !{sum $r}] },
        ] }
        echo !{sum `node [`leaf 1, `node [`leaf 2, `leaf 3]]}
    """
    assert out(program) == "6\n"
    for refused in ("let knot = { |go| go $go }", "let f = { |x| return $f }"):
        assert code(refused).returncode == 1


def test_a_recursive_type_holds_at_a_boundary() -> None:
    program = "let go = { |x| each { |y| echo in; go $y } $x }; let d = from-json << '%s'; go $d"
    assert out(program % "[[], [[]]]") == "in\nin\nin\n"
    done = code(program % "[[1]]")
    assert done.returncode == 1
    assert b"/0/0" in done.stderr


def test_mutual_tail_calls_run_in_constant_space() -> None:
    program = """
        let even = { |n| if $[$n == 0] { return true } else { odd $[$n - 1] } }
        let odd = { |n| if $[$n == 0] { return false } else { even $[$n - 1] } }
        echo !{even 1000000}
    """
    assert out(program) == "true\n"


def test_deep_values_are_printed_compared_and_encoded() -> None:
    build = "let f = { |n acc| if $[$n == 0] { return $acc } else { f $[$n - 1] [$acc] } }; let v = f %d []; "
    done = code(
        (build % 5000).replace("[$acc]", "`s $acc").replace(" []; ", " `z; ") + "echo !{equal $v $v}; echo $v | wc -c"
    )
    assert done.stdout == b"true\n15003\n"
    deep = "let d = from-json << '" + "[" * 5000 + "]" * 5000 + "'; to-json $d"
    assert len(out(deep)) == 10_001
    assert code("let d = from-json << '" + "[" * 20_000 + "]" * 20_000 + "'; echo $d").returncode == 1


def test_errors_carry_code_place_and_hint() -> None:
    done = code("let colour = 1\necho $colur")
    errors = done.stderr.decode()
    for words in ("T0010", "-c:2:6", "^^^^^^", "did you mean $colour?"):
        assert words in errors
    done = code("let xs = [1]\nlet f = { |i| return $xs[$i] }\necho !{f 3}")
    assert "-c:2:" in done.stderr.decode()


def test_the_environment_of_a_child() -> None:
    program = "within [dir: '/', env: [A: 1, B: true]] { sh -c 'echo $PWD $A $B ${OLDPWD-none}' }; ^pwd"
    lines = out(program).splitlines()
    assert lines[0] == "/ 1 true none"
    assert code("within [env: [RAL_JOB: 'x']] { echo no }").returncode == 1
