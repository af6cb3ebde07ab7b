"""The lexer and the parser: no crash, no long recursion, and incomplete told from wrong."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ral.diag import Incomplete, Source, StaticError
from ral.syntax import parse

PROGRAMS = [
    'let f = { |x [a, b] [k: v]| echo "$x $a !{length $b}" | cat > out 2>&1 }\nf 1 [2, 3] [k: `ok 4]',
    "if $[1 + 2 * (3 - -4) <= 7 && not false] { echo a } elsif $t { } else { return [1, ...$xs] }",
    "case $r [\n `ok: { |v| echo $v },\n `err: $handle,\n]",
    "within [dir: 'a', env: [X: 1], handlers: [git: { |args| echo ...$args }], timeout: 2] { ^git status } >> log",
    "try { a | b ? c } { |e| fail $e }\nguard { x } { y }\nlet [p, ...q] = cmd -a --b=c,d #'raw '' text'# &",
    "let m = [:, a: 1, 'b c': 2, ...$n]; echo $m[a] $m[$k][0] !$f[x] !{g}[h] `tag () ~/x",
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_prefix_is_valid_or_incomplete(program: str) -> None:
    parse(Source("t", program))
    for end in range(len(program)):
        try:
            parse(Source("t", program[:end]))
        except Incomplete:
            continue
        except StaticError as e:
            # Cutting a word in two can leave a wrong word; nothing else may be refused.
            problem = e.problems[0]
            assert problem.end >= end - 12, (program[:end], problem.message)


ALPHABET = "abcletifreturn $[]{}()!^|?&;:,.'\"#`~<>=+-*/%\\0129\n\t \r\x00é"


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=ALPHABET, max_size=80))
def test_no_text_crashes_the_parser(text: str) -> None:
    try:
        parse(Source("t", text))
    except (StaticError, Incomplete):
        pass


@pytest.mark.parametrize(
    "unit",
    [
        "echo a; ",
        "echo $x[0][1] | ",
        "[1, ",
        "$[1 + ",
        "!{",
        "{ ",
        "(",
        "if true { echo a } elsif ",
        "a ? ",
        "`a ",
        "-",
        "not ",
    ],
)
def test_long_inputs_take_linear_time_and_no_stack(unit: str) -> None:
    def seconds(times: int) -> float:
        start = time.perf_counter()
        try:
            parse(Source("t", unit * times))
        except (StaticError, Incomplete):
            pass
        return time.perf_counter() - start

    seconds(100)
    small, large = min(seconds(1000) for _ in range(3)), min(seconds(10_000) for _ in range(2))
    assert large < 60 * small + 0.2


@pytest.mark.parametrize(("open_", "close"), [("[", "]"), ("!{return ", "}"), ("$[(", ")]"), ("{ ", "}")])
def test_sixty_four_nested_forms_pass_and_more_are_refused(open_: str, close: str) -> None:
    per = len([c for c in open_ if c in "[{("])
    inner = "1" if open_ != "{ " else ""
    fits = 64 // per
    parse(Source("t", "return " + open_ * fits + inner + close * fits))
    with pytest.raises(StaticError):
        parse(Source("t", "return " + open_ * (fits + 1) + inner + close * (fits + 1)))
