"""Which way the model went at each branch, noted while it runs.

For as long as `noting` lasts, the functions of `manager` and `kube` carry other code: the same source, in which each
condition, loop and handler also says what came of it. The functions stay the objects they are, so whoever holds one runs
it, and no step knows of it. Not noted is what only keeps time or connections (`UNNOTED`): whether a request had to wait
for the rate limiter is no decision.
"""

from __future__ import annotations

import ast
import importlib
import types
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from simulator.kube import drain
from simulator.kube.rest import Waiting
from simulator.kube.waiting import concurrent
from simulator.ports import Clock

MODULES: Final = (
    "simulator.manager.steps",
    "simulator.manager.kubernetes",
    "simulator.manager.mount",
    "simulator.manager.linuxutils",
    "simulator.manager.v0_9_1",
    "simulator.manager.v0_10_0",
    "simulator.manager.v0_11_0",
    "simulator.manager.v0_12_0",
    "simulator.manager.whatif",
    "simulator.kube.clientset",
    "simulator.kube.drain",
    "simulator.kube.rest",
    "simulator.kube.waiting",
)
"""What decides in a run of a Go release once its settings are read and its client is made."""
UNNOTED: Final = {
    "RateLimiter.reserve": "time: when the bucket has a token again",
    "RestClient._reserve": "time: how long the bucket makes a request wait",
    "RestClient._throttle": "time: the wait for the bucket, and its line in the log",
    "RestClient._waited": "time: how long a failure takes to show",
    "RestClient.do: wait": "time: whether the bucket makes it wait",
    "RestClient.do: (wait := self._reserve(group, ends))": "time: whether the bucket makes it wait",
    "Connection._take": "connections: is one of them still open?",
    "drive": "time: so often something was waited for",
    "deadline": "time: the earlier of two deadlines",
    "StatusError.__init__": "form: what an error document holds; who asks for it decides",
    "Clientset.eviction_version": "form: the order of the discovery document; whoever asks decides by the answer",
    "check_name": "form: names that cannot be a path's",
    "check_namespace": "form: names that cannot be a path's",
    "path_segment_errors": "form: names that cannot be a path's",
    "concurrent": "time: which goroutine wakes first; what each decides is noted",
}
"""Functions whose branches are no decisions, and conditions (`function: condition`) that are none; and why."""
_ROWS: Final = ("list_modules", "recursive_unmount")
"""Functions whose loops are over rows and mounts: how many are alike decides nothing."""
_PREFIX: Final = "_explored_"

Note: TypeAlias = int
"""What is noted: `2 * site + outcome` of a branch (1 is yes); of a loop `-3 * site` and 1, 2 or 3 less (`AGAIN` and so on)."""
AGAIN, ENDED, LEFT = 1, 2, 3
"""A loop begins an iteration; it is done; it was left in the midst of one."""
Way: TypeAlias = "tuple[Any, ...]"
"""Notes in the form in which they are compared: numbers, and for each loop its site and iterations."""


class Site(NamedTuple):
    """A place in the source where the way forks: a condition, an operand of `and` or `or`, a handler, a case, a loop."""

    module: str
    function: str
    line: int
    kind: str
    text: str
    outcomes: tuple[str, ...]


class Instrumented(NamedTuple):
    """The noting code of all modules: (file, qualified name, first line) -> code; and its sites, by number."""

    code: dict[tuple[str, str, int], types.CodeType]
    sites: tuple[Site, ...]
    unnoted: frozenset[str]
    """Those of `UNNOTED` that were met."""


class _Rewriter(ast.NodeTransformer):
    def __init__(self, module: str, sites: list[Site], unnoted: set[str]) -> None:
        self._module, self._sites, self._unnoted = module, sites, unnoted
        self._names: list[str] = []

    def _site(self, node: ast.AST, kind: str, text: str, outcomes: tuple[str, ...]) -> int:
        self._sites.append(Site(self._module, ".".join(self._names), getattr(node, "lineno", 0), kind, text, outcomes))
        return len(self._sites) - 1

    def _is_unnoted(self, name: str) -> bool:
        if name in UNNOTED:
            self._unnoted.add(name)
        return name in UNNOTED

    @staticmethod
    def _text(node: ast.AST) -> str:
        return ast.unparse(node)

    @staticmethod
    def _call(name: str, *args: ast.expr) -> ast.Call:
        return ast.Call(ast.Name(_PREFIX + name, ast.Load()), list(args), [])

    def _asked(self, test: ast.expr, kind: str) -> ast.expr:
        """A condition that also says what it is. Of `and`, `or` each operand says so; `not` says nothing of its own."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return ast.copy_location(ast.UnaryOp(ast.Not(), self._asked(test.operand, kind)), test)
        if isinstance(test, ast.BoolOp):
            return ast.copy_location(ast.BoolOp(test.op, [self._asked(value, kind) for value in test.values]), test)
        text = self._text(test)
        if isinstance(test, ast.Constant) or self._is_unnoted(f"{'.'.join(self._names)}: {text}"):
            return test
        site = self._site(test, kind, text, ("no", "yes"))
        return ast.copy_location(self._call("asked", ast.Constant(site), self.visit(test)), test)

    def _note(self, note: Note, at: ast.AST) -> ast.stmt:
        return ast.copy_location(ast.Expr(self._call("came", ast.Constant(note))), at)

    # --- what opens a name ------------------------------------------------------------------------------------------

    def _named(self, node: Any) -> Any:
        self._names.append(node.name)
        try:
            if not isinstance(node, ast.ClassDef) and self._is_unnoted(".".join(self._names)):
                return node
            return self.generic_visit(node)
        finally:
            self._names.pop()

    visit_FunctionDef = visit_ClassDef = visit_AsyncFunctionDef = _named  # noqa: N815  # ast's names

    # --- what forks -------------------------------------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> ast.AST:
        node.test = self._asked(node.test, "if")
        node.body = [self.visit(part) for part in node.body]
        node.orelse = [self.visit(part) for part in node.orelse]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        node.test = self._asked(node.test, "if")
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """As a value: all operands but the last decide."""
        node.values = [*(self._asked(value, "operand") for value in node.values[:-1]), self.visit(node.values[-1])]
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self.generic_visit(node)
        caught = self._text(node.type) if node.type else "anything"
        node.body.insert(0, self._note(2 * self._site(node, "handler", f"except {caught}", ("raised",)), node.body[0]))
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        self.generic_visit(node)
        text = self._text(node.pattern)
        node.body.insert(0, self._note(2 * self._site(node.pattern, "case", f"case {text}", ("taken",)), node.body[0]))
        return node

    # --- what repeats -----------------------------------------------------------------------------------------------

    def _each(self, site_of: ast.AST, iterated: ast.expr) -> ast.expr:
        site = self._site(site_of, "for", self._text(iterated), ("iteration",))
        return ast.copy_location(self._call("each", ast.Constant(site), self.visit(iterated)), iterated)

    def visit_For(self, node: ast.For) -> ast.AST:
        node.iter = self._each(node, node.iter)
        node.body = [self.visit(part) for part in node.body]
        node.orelse = [self.visit(part) for part in node.orelse]
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        site = self._site(node, "while", self._text(node.test), ("iteration",))
        node.test = self._asked(node.test, "while")
        node.body = [self._note(-3 * site - AGAIN, node.body[0]), *(self.visit(part) for part in node.body)]
        return ast.copy_location(ast.Try([node], [], [], [self._note(-3 * site - ENDED, node)]), node)

    def visit_ListComp(self, node: Any) -> ast.AST:
        for each in node.generators:
            each.iter = self._each(node, each.iter)
            each.ifs = [self._asked(condition, "if") for condition in each.ifs]
        for name in ("elt", "key", "value"):
            if hasattr(node, name):
                setattr(node, name, self.visit(getattr(node, name)))
        return node  # type: ignore[no-any-return]  # one of ast's own

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp  # noqa: N815  # ast's names


@lru_cache(maxsize=1)
def instrumented() -> Instrumented:
    """The code that notes, compiled once."""
    sites: list[Site] = []
    unnoted: set[str] = set()
    code: dict[tuple[str, str, int], types.CodeType] = {}
    for name in MODULES:
        file = importlib.import_module(name).__file__
        assert file is not None
        source = Path(file).read_text(encoding="utf-8")
        tree = _Rewriter(name, sites, unnoted).visit(ast.parse(source))
        pending: list[types.CodeType] = [compile(ast.fix_missing_locations(tree), file, "exec", dont_inherit=True)]
        while pending:
            one = pending.pop()
            code[file, one.co_qualname, one.co_firstlineno] = one
            pending += [const for const in one.co_consts if isinstance(const, types.CodeType)]
    return Instrumented(code, tuple(sites), frozenset(unnoted))


def functions() -> Iterator[types.FunctionType]:
    """The functions of all modules, with the methods of their classes and what stands inside a decorator."""
    for name in MODULES:
        module = importlib.import_module(name)
        for value in vars(module).values():
            yield from _functions_in(value, name)


def _functions_in(value: Any, module: str) -> Iterator[types.FunctionType]:
    if isinstance(value, type):
        if value.__module__ == module:
            for attribute in vars(value).values():
                yield from _functions_in(attribute, module)
    elif isinstance(value, property):
        for part in (value.fget, value.fset):
            yield from _functions_in(part, module)
    elif isinstance(value, staticmethod | classmethod):
        yield from _functions_in(value.__func__, module)
    elif hasattr(value, "__wrapped__"):
        yield from _functions_in(value.__wrapped__, module)
    elif isinstance(value, types.FunctionType) and value.__module__ == module:
        yield value


class Tape:
    """What is noted, in order. Goroutines note on tapes of their own while they run."""

    def __init__(self) -> None:
        self.notes: list[Any] = []

    def asked(self, site: int, value: Any) -> Any:
        """A condition's value, passed on."""
        self.notes.append(2 * site + 1 if value else 2 * site)
        return value

    def came(self, note: Note) -> None:
        """The way led here."""
        self.notes.append(note)

    def each(self, site: int, iterated: Iterable[Any]) -> Iterator[Any]:
        """What is iterated, its iterations noted."""
        end = LEFT
        try:
            for item in iterated:
                self.notes.append(-3 * site - AGAIN)
                yield item
            end = ENDED
        finally:
            self.notes.append(-3 * site - end)

    @contextmanager
    def _on(self, notes: list[Any]) -> Iterator[None]:
        outer, self.notes = self.notes, notes
        try:
            yield
        finally:
            self.notes = outer

    def concurrent(self, clock: Clock, works: Sequence[Waiting[Any]]) -> Waiting[list[Any]]:
        """`kube.waiting.concurrent`: what each of the works notes stays together, and their order does not count."""
        tapes: list[list[Any]] = [[] for _ in works]

        def taped(work: Waiting[Any], own: list[Any]) -> Waiting[Any]:
            try:
                while True:
                    with self._on(own):
                        try:
                            pause = next(work)
                        except StopIteration as stop:
                            return stop.value
                    yield pause
            finally:  # somebody stopped watching: what is left of it notes so on its own tape
                with self._on(own):
                    work.close()

        try:
            return (yield from concurrent(clock, [taped(work, own) for work, own in zip(works, tapes, strict=True)]))
        finally:  # also where one of them panics
            self.notes.append(tuple(tapes))


@contextmanager
def noting() -> Iterator[Tape]:
    """Let the model note its branches on a tape. One at a time: the functions are the process's, so a second is a RuntimeError."""
    if drain.concurrent is not concurrent:  # type: ignore[attr-defined]  # it is imported there
        raise RuntimeError("the model's branches are noted already")
    tape = Tape()
    code = instrumented().code
    changed: list[tuple[types.FunctionType, types.CodeType]] = []
    for function in functions():
        plain = function.__code__
        noted = code.get((plain.co_filename, plain.co_qualname, plain.co_firstlineno))
        if noted is not None:  # what a decorator has made is not in the source
            changed.append((function, plain))
            function.__code__ = noted
    spaces = [vars(importlib.import_module(name)) for name in MODULES]
    for space in spaces:
        space |= {f"{_PREFIX}asked": tape.asked, f"{_PREFIX}came": tape.came, f"{_PREFIX}each": tape.each}
    vars(drain)["concurrent"] = tape.concurrent
    try:
        yield tape
    finally:
        vars(drain)["concurrent"] = concurrent
        for function, plain in changed:
            function.__code__ = plain
        for space in spaces:
            for name in ("asked", "came", "each"):
                del space[_PREFIX + name]


class _Loop(NamedTuple):
    """A loop in notes: its site, what became of it, its iterations."""

    site: int
    what: int
    iterations: list[list[Any]]


def way(notes: Sequence[Any], most: int, *, endless: bool = False) -> Way:
    """Notes as they are compared.

    Iterations of a loop that came to its end are a multiset, each of which counts `most` times at the most; of one that was
    left they are a sequence. The rounds of a `while` that are alike, one after the other, count `most` times too, rows of a
    table and mounts once. Of an `endless` run the round in which somebody stopped watching does not count.
    """
    parsed = _parsed(notes)
    if endless:
        _trim(parsed)
    return _compared(parsed, most)


def _parsed(notes: Sequence[Any]) -> list[Any]:
    """Notes with their loops put together; goroutines are a tuple of such lists."""
    current: list[Any] = []
    open_loops: list[tuple[int, list[Any], list[list[Any]]]] = []

    def close(what: int) -> None:
        nonlocal current
        site, outer, iterations = open_loops.pop()
        outer.append(_Loop(site, what, [*iterations, current]))
        current = outer

    for note in notes:
        if isinstance(note, tuple):
            current.append(tuple([_parsed(tape) for tape in note]))
        elif note >= 0:
            current.append(note)
        else:
            site, what = divmod(-note - 1, 3)
            what += 1
            if open_loops and open_loops[-1][0] == site:
                if what == AGAIN:
                    open_loops[-1][2].append(current)
                    current = []
                else:
                    close(what)
            elif what == AGAIN:
                open_loops.append((site, current, []))
                current = []
            else:
                current.append(_Loop(site, what, []))
    while open_loops:
        close(LEFT)
    return current


def _trim(parsed: list[Any]) -> None:
    """Take away the last iteration of the loop, or of the goroutines' loops, that a run was in when it was stopped."""
    match parsed[-1] if parsed else None:
        case _Loop(site, _, iterations):
            parsed[-1] = _Loop(site, LEFT, iterations[:-1])
        case int() | None:
            pass
        case tapes:
            for tape in tapes:
                _trim(tape)


def _compared(parsed: Sequence[Any], most: int) -> Way:
    out: list[Any] = []
    sites = instrumented().sites
    for item in parsed:
        if isinstance(item, _Loop):
            site = sites[item.site]
            ways = [_compared(iteration, most) for iteration in item.iterations]
            often = 1 if site.function in _ROWS else most
            out.append((item.site, item.what, _counted(ways, item.what, often, in_order=site.kind == "while")))
        elif isinstance(item, tuple):
            out.append(("goroutines", _multiset([_compared(tape, most) for tape in item], most)))
        else:
            out.append(item)
    return tuple(out)


def notes_of(way: Way) -> Iterator[int]:
    """The branch outcomes of a way that are not inside a loop or a goroutine: twice the site, and 1 for yes."""
    return (note for note in way if isinstance(note, int))


def _counted(iterations: Sequence[Way], what: int, most: int, *, in_order: bool) -> Any:
    if in_order:
        return tuple(one for _, alike in groupby(iterations) for one in islice(alike, most))
    return _multiset(iterations, most) if what == ENDED else tuple(iterations)


def _multiset(ways: Iterable[Way], most: int) -> frozenset[tuple[Way, int]]:
    return frozenset((one, min(count, most)) for one, count in Counter(ways).items())
