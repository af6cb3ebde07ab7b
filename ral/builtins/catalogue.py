"""Name -> module, type, one line. The one list of builtins."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ral.check.types import Scheme

from ral.core.native import SIGNATURES, arity_of, mangle

ERROR = (
    "[cmd: String, status: Int, reason: <`exited Int | `signaled Int | `cancelled <`interrupted | `cancelled | `timed-out "
    "| `terminated | `aborted | `reader-gone> | `not-found | `not-runnable | `raised>, message: String, "
    "site: <`just [script: String, line: Int, col: Int] | `none>]"
)
DONE = "[value: a, stdout: Bytes, stderr: Bytes]"
POLL = f"<`pending [stdout: Bytes, stderr: Bytes] | `settled [stdout: Bytes, stderr: Bytes, outcome: <`ok a | `err {ERROR}>]>"
FILE = (
    "[name: String, type: String, size: Int, modified: Int, accessed: Int, created: Int, readonly: Bool, "
    "target: <`just String | `none>]"
)
OPTION = "<`just a | `none>"

# module, type, line
CATALOGUE: dict[str, tuple[str, str, str]] = {
    # collections
    "map": ("lists", "{a -> b} -> [a] -> [b]", "apply a function to every element"),
    "filter": ("lists", "{a -> Bool} -> [a] -> [a]", "keep the elements for which a function says true"),
    "each": ("lists", "{a -> %g b} -> [a] -> Unit", "run a function on every element, in order"),
    "for": ("lists", "[a] -> {a -> %g b} -> Unit", "each, the list first"),
    "fold": ("lists", "{b -> a -> %g b} -> b -> [a] -> b", "combine a list from the left, from a start value"),
    "reduce": ("lists", "{a -> a -> a} -> [a] -> a", "fold without a start value; fails on an empty list"),
    "range": ("lists", "Int -> Int -> [Int]", "the Ints from a start up to an end, which is not included"),
    "length": ("lists", "a:sized -> Int", "characters, bytes, elements or entries"),
    "is-empty": ("lists", "a:sized -> Bool", "whether length is 0"),
    "keys": ("lists", "a:keyed -> [String]", "the keys of a map or record, sorted"),
    "has": ("lists", "Map a -> String -> Bool", "whether a map has a key"),
    "get": ("lists", "Map a -> String -> a -> a", "the value of a key, or a default"),
    "reverse": ("lists", "[a] -> [a]", "the list from its end to its start"),
    "first": ("lists", f"[a] -> {OPTION}", "`just the first element, or `none"),
    "last": ("lists", f"[a] -> {OPTION}", "`just the last element, or `none"),
    "option-or": ("lists", f"a -> {OPTION} -> a", "what an option holds, or a default"),
    "take": ("lists", "Int -> [a] -> [a]", "the first n elements"),
    "drop": ("lists", "Int -> [a] -> [a]", "all but the first n elements"),
    "take-while": ("lists", "{a -> Bool} -> [a] -> [a]", "the elements before the first that a function refuses"),
    "drop-while": ("lists", "{a -> Bool} -> [a] -> [a]", "the elements from the first that a function refuses"),
    "elem": ("lists", "a:data -> [a] -> Bool", "whether a list holds a value"),
    "nub": ("lists", "[a:data] -> [a]", "each value once, the first kept"),
    "zip": ("lists", "[a] -> [b] -> [[left: a, right: b]]", "pairs of elements, as long as the shorter list"),
    "flat-map": ("lists", "{a -> [b]} -> [a] -> [b]", "map, the resulting lists joined"),
    "concat": ("lists", "[[a]] -> [a]", "the lists of a list, joined"),
    "cross": ("lists", "[a] -> [b] -> [[left: a, right: b]]", "every pair of elements"),
    "enumerate": ("lists", "[a] -> [[index: Int, item: a]]", "elements with their positions"),
    "group-by": ("lists", "{a -> String} -> [a] -> Map [a]", "a map of lists by a text key"),
    "sort-list": ("lists", "[a:comparable] -> [a]", "numbers by size or text by character"),
    "sort-list-by": ("lists", "{a -> b:comparable} -> [a] -> [a]", "sorted by a key function"),
    "sum": ("lists", "[a:number] -> a", "the sum of numbers"),
    "max": ("lists", "a:comparable -> a -> a", "the larger of two"),
    "min": ("lists", "a:comparable -> a -> a", "the smaller of two"),
    "maximum": ("lists", "[a:comparable] -> a", "the largest element"),
    "minimum": ("lists", "[a:comparable] -> a", "the smallest element"),
    "median": ("lists", "[a:comparable] -> a", "the middle element; of two, the lower"),
    "median-by": ("lists", "{a -> b:comparable} -> [a] -> a", "the middle element by a key function"),
    "equal": ("lists", "a:data -> a -> Bool", "structural equality"),
    "lt": ("lists", "a:comparable -> a -> Bool", "less than"),
    "gt": ("lists", "a:comparable -> a -> Bool", "greater than"),
    # text and numbers
    "upper": ("words", "String -> String", "in capitals"),
    "lower": ("words", "String -> String", "in small letters"),
    "dedent": ("words", "String -> String", "without the indentation that all lines share"),
    "indent": ("words", "String -> String -> String", "a prefix before every line"),
    "slice": ("words", "String -> Int -> Int -> String", "the characters from a start up to an end, clamped"),
    "repeat": ("words", "Int -> String -> String", "a text n times"),
    "pad-left": ("words", "Int -> String -> String", "spaces before a text, up to a width"),
    "pad-right": ("words", "Int -> String -> String", "spaces after a text, up to a width"),
    "intercalate": ("words", "String -> [String] -> String", "texts joined by a separator"),
    "contains": ("words", "String -> String -> Bool", "whether the first text occurs in the second"),
    "words": ("words", "String -> [String]", "the words of a text, split at blanks"),
    "from-words": ("words", "[String] -> String", "words joined by spaces"),
    "lines": ("words", "String -> [String]", "the lines of a text"),
    "string-replace": ("words", "String -> String -> String -> String", "the one place of a text replaced"),
    "re-match": ("words", "String -> String -> Bool", "whether a pattern matches somewhere in a text"),
    "re-find-match": ("words", "String -> String -> <`just String | `none>", "the first match of a pattern"),
    "re-find-matches": ("words", "String -> String -> [String]", "every match of a pattern"),
    "re-split": ("words", "String -> String -> [String]", "a text split at a pattern"),
    "re-replace": ("words", "String -> String -> String -> String", "the first match replaced"),
    "re-replace-all": ("words", "String -> String -> String -> String", "every match replaced"),
    "shell-quote": ("words", "String -> String", "one safely quoted word for a POSIX shell"),
    "shell-split": ("words", "String -> [String]", "the words of a POSIX shell command"),
    "str": ("words", "a -> String", "the text form of a value"),
    "int": ("words", "a:comparable -> Int", "a number or a text as an Int"),
    "float": ("words", "a:comparable -> Float", "a number or a text as a Float"),
    "round": ("words", "a:number -> Int -> Float", "rounded to decimal places, halves away from zero"),
    "floor": ("words", "Float -> Int", "the Int below"),
    "ceil": ("words", "Float -> Int", "the Int above"),
    "trunc": ("words", "Float -> Int", "the Int toward zero"),
    # codecs and lines
    "from-bytes": ("codecs", "Bytes", "the input as Bytes"),
    "from-string": ("codecs", "String", "the input as text, strictly UTF-8"),
    "from-line": ("codecs", "String", "the input as text without its last line end"),
    "from-lines": ("codecs", "[String]", "the lines of the input"),
    "from-json": ("codecs", "a", "the input as JSON"),
    "from-jsonl": ("codecs", "[a]", "the input as one JSON value a line"),
    "from-json-at": ("codecs", "[String] -> a", "the JSON value at a list of reference tokens"),
    "from-csv": ("codecs", "[Map String]", "the input as CSV, one map a row"),
    "to-bytes": ("codecs", "Bytes -> !", "write bytes"),
    "ints-to-bytes": ("codecs", "[Int] -> !", "write the bytes that numbers from 0 to 255 name"),
    "to-string": ("codecs", "a -> !", "write a value's text"),
    "to-line": ("codecs", "a -> !", "write a value's text and a newline"),
    "to-lines": ("codecs", "[a] -> !", "write each element's text and a newline"),
    "to-json": ("codecs", "a:data -> !", "write a value as JSON"),
    "to-jsonl": ("codecs", "[a:data] -> !", "write each element as a line of JSON"),
    "to-csv": ("codecs", "[Map String] -> !", "write maps of text as CSV"),
    "fold-lines": ("lines", "{b -> String -> %g b} -> b -> b", "fold over the lines of the input"),
    "map-lines": ("lines", "{String -> a:scalar} -> !", "write a function's value for each line of the input"),
    "filter-lines": ("lines", "{String -> Bool} -> !", "write the lines for which a function says true"),
    "each-line": ("lines", "{String -> %g a} -> !", "run a function on each line of the input"),
    # files
    "cwd": ("files", "String", "the working directory, absolute"),
    "absolute-path": ("files", "String -> String", "a path made absolute, without looking at it"),
    "resolve-path": ("files", "String -> String", "an existing path without links"),
    "exists": ("files", "String -> Bool", "whether a path exists, a link for itself"),
    "is-file": ("files", "String -> Bool", "whether a path is a regular file"),
    "is-dir": ("files", "String -> Bool", "whether a path is a directory"),
    "is-link": ("files", "String -> Bool", "whether a path is a symbolic link"),
    "is-readable": ("files", "String -> Bool", "whether a path can be read"),
    "is-writable": ("files", "String -> Bool", "whether a path can be written"),
    "file-empty": ("files", "String -> Bool", "whether a file has no bytes"),
    "file-info": ("files", f"String -> {FILE}", "a path's metadata"),
    "list-dir": ("files", f"String -> [{FILE}]", "the entries of a directory, sorted by name"),
    "line-count": ("files", "String -> Int", "how many lines a file has"),
    "extension": ("files", "String -> <`just String | `none>", "the suffix of a path's last component"),
    "glob": ("files", "String -> [String]", "the paths that match a pattern, sorted"),
    "temp-dir": ("files", "String", "a new directory for temporary files"),
    "temp-file": ("files", "String", "a new temporary file"),
    # control
    "fail": ("control", "[status: Int, message: String, *] -> ?d", "raise a failure"),
    "exit": ("control", "Int -> ?d", "end the session with a status"),
    "quit": ("control", "Int -> ?d", "another spelling of exit"),
    "cd": ("control", "String -> Unit", "change the working directory"),
    "warn": ("control", "String -> Unit", "write a line to standard error"),
    "ask": ("control", "String -> String", "ask a question on the terminal"),
    "attempt": ("control", "{%g a} -> Unit", "run a block and ignore its failure"),
    "succeeds": ("control", "{%g a} -> Bool", "whether a block succeeds"),
    "use": ("control", "String -> a", "the public bindings of a file, as a record"),
    "alias": ("control", "String -> {[String] -> %g a} -> Unit", "answer a command name with a block"),
    "unalias": ("control", "String -> Unit", "remove an alias"),
    "help": ("control", "!", "list the standard words"),
    "explain": ("control", "String -> !", "describe a word"),
    # concurrency
    "spawn": ("workers", "{%g a} -> Handle a", "start a block as a worker"),
    "watch": ("workers", "String -> {%g a} -> Handle a", "start a worker whose lines are shown as they come"),
    "await": ("workers", f"Handle a -> {DONE}", "wait for a worker"),
    "poll": ("workers", f"Handle a -> {POLL}", "look at a worker without waiting"),
    "is-done": ("workers", "Handle a -> Bool", "whether a worker has settled"),
    "race": ("workers", f"[Handle a] -> {DONE}", "the first worker to settle; the others are cancelled"),
    "cancel": ("workers", "Handle a -> Unit", "stop a worker"),
    "par": ("workers", "{a -> %g b} -> [a] -> Int -> [b]", "map with so many workers at once"),
}

SIGNATURES.update({name: row[1] for name, row in CATALOGUE.items()})
SCHEMES: "dict[str, Scheme]" = {}
BASES = ("echo",)


def signature(name: str) -> "Scheme":
    """The type scheme of a builtin, read once."""
    known = SCHEMES.get(name)
    if known is None:
        from ral.check.signature import read_signature

        known = SCHEMES[name] = read_signature(SIGNATURES[name])
    return known


def load(name: str) -> "tuple[Callable[..., Any], int]":
    """A builtin's code and arity."""
    module = __import__("ral.builtins." + CATALOGUE[name][0], fromlist=["x"])
    return getattr(module, mangle(name) + "_"), arity_of(name)
