"""House rules that no linter knows, as functions from text to complaints.

Each returns lines such as "12: float noise: normal"; an empty list means that the rule is kept.
They are functions of text so that the tests can plant a breach and see it found.
"""

import ast
import fnmatch
import graphlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST_MODULE = 400

# Spelt so that this file does not break its own rules.
_REGISTRY = re.compile(
    r"pypi[.]org|python[h]osted|registry[.]npmjs|(?:deb|security)[.]debian|debian[.]org/debian"
    r"|archive[.]ubuntu|(?:docker|ghcr)[.]io/[v]2"
)
_MACHINE = re.compile(
    r"(?<![\w.:])/(?:home|Users)/\w|(?<![\w.])/roo[t]/|(?<![\w.])/wor[k]/|[.]{2}/share[d]\b"
)
_TICKET = re.compile(r"\bissues?[ ]#?\d", re.IGNORECASE)
_UNFINISHED = re.compile(r"\b(?:TO[D]O|FIX[M]E|XX[X]|HAC[K])\b|raise NotImplemented")
_SILENT = re.compile(r"pytest[.](?:mark[.])?(?:ski[p]|xfai[l])|import[o]rskip|unittest[.]ski[p]")

FLOAT_SAMPLERS = {
    "exponential",
    "expovariate",
    "gauss",
    "gumbel",
    "laplace",
    "logistic",
    "multivariate_normal",
    "normal",
    "normalvariate",
    "rvs",
    "standard_exponential",
    "standard_normal",
}
VAGUE_NAMES = {"common", "core", "helper", "helpers", "manager", "misc", "service", "util", "utils"}


def repository_files(root: Path = ROOT) -> list[Path]:
    """Return what belongs to the repository: everything that .gitignore does not name.

    It reads the plain patterns that our .gitignore uses instead of asking git, which need not be
    installed where the tests run, and refuses to read another user's clone.
    """
    lines = (root / ".gitignore").read_text().split()
    folders = [line.rstrip("/") for line in lines if line.endswith("/")] + [".git"]
    names = [line for line in lines if not line.endswith("/")] + [".git"]  # a worktree's is a file

    def matches(name: str, patterns: list[str]) -> bool:
        return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)

    found = []
    for folder, below, files in os.walk(root):
        below[:] = sorted(name for name in below if not matches(name, folders))
        found += [Path(folder, name) for name in sorted(files) if not matches(name, names)]
    return found


def _matching(pattern: re.Pattern[str], text: str, rule: str) -> list[str]:
    return [
        f"{number}: {rule}: {match.group()}"
        for number, line in enumerate(text.splitlines(), start=1)
        if (match := pattern.search(line))
    ]


def named_places(text: str) -> list[str]:
    """Complain about registry hosts, one machine's paths, and ticket numbers."""
    return (
        _matching(_REGISTRY, text, "a registry's address")
        + _matching(_MACHINE, text, "a path of one machine")
        + _matching(_TICKET, text, "a ticket number")
    )


def unfinished(text: str) -> list[str]:
    """Complain about marks of unfinished work."""
    return _matching(_UNFINISHED, text, "unfinished")


def silent_skips(text: str) -> list[str]:
    """Complain about tests that may be left out without `tests.requirements` saying so."""
    return _matching(_SILENT, text, "skips silently")


def too_long(text: str) -> list[str]:
    """Complain about a module that is two things."""
    lines = len(text.splitlines())
    return [f"{lines}: more than {LONGEST_MODULE} lines"] if lines > LONGEST_MODULE else []


def vague_name(path: Path) -> list[str]:
    """Complain about a name that does not say what lives there."""
    return [f"0: a vague name: {path.stem}"] if path.stem in VAGUE_NAMES else []


def no_docstring(source: str) -> list[str]:
    """Complain about a module that does not say what it is."""
    return [] if ast.get_docstring(ast.parse(source)) else ["1: no docstring"]


def float_noise(source: str) -> list[str]:
    """Complain about continuous samplers: their low bits betray what was added to them."""
    complaints = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Attribute) and called.attr in FLOAT_SAMPLERS:
                complaints.append(f"{node.lineno}: float noise: {called.attr}")
        elif isinstance(node, ast.ImportFrom) and "random" in (node.module or ""):
            complaints += [
                f"{node.lineno}: float noise: {alias.name}"
                for alias in node.names
                if alias.name in FLOAT_SAMPLERS
            ]
    return complaints


def reproducible_randomness(source: str) -> list[str]:
    """Complain about generators that have a seed or a state: `random` and `numpy.random`."""
    complaints = []
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names = [f"{node.value.id}.{node.attr}"]
        complaints += [
            f"{node.lineno}: reproducible randomness: {name}"
            for name in names
            if re.match(r"(?:random|(?:np|numpy)\.random)\b", name)
        ]
    return complaints


def anchors(markdown: str) -> set[str]:
    """Return the anchors that GitHub gives a page's headings."""
    found: set[str] = set()
    for _, line in _prose(markdown):
        if heading := re.match(r"#{1,6}\s+(.*?)\s*#*$", line):
            text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1))
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            twins = sum(
                re.fullmatch(re.escape(slug) + r"(-\d+)?", known) is not None for known in found
            )
            found.add(f"{slug}-{twins}" if twins else slug)
        found.update(re.findall(r'<a (?:id|name)="([^"]+)"', line))
    return found


def _prose(markdown: str) -> Iterator[tuple[int, str]]:
    """Yield a page's lines with their numbers, without fenced code."""
    fence = ""
    for number, line in enumerate(markdown.splitlines(), start=1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and not fence:
            fence = mark.group(1)
        elif mark and mark.group(1).startswith(fence):
            fence = ""
        elif not fence:
            yield number, line


def broken_links(page: Path, root: Path = ROOT) -> list[str]:
    """Complain about relative links of a Markdown page whose file or heading does not exist."""
    complaints = []
    for number, line in _prose(page.read_text()):
        plain = re.sub(r"`[^`]*`", "", line)
        targets = re.findall(r"\]\(\s*<?([^)\s>]+)", plain)
        targets += re.findall(r"^\s*\[[^\]]+\]:\s*(\S+)", plain)
        targets += re.findall(r'(?:src|href)="([^"]+)"', plain)
        for target in targets:
            if re.match(r"[a-z][a-z0-9+.-]*:|//", target):
                continue
            name, _, anchor = target.partition("#")
            file = (page.parent / name).resolve() if name else page
            if not file.exists() or not file.is_relative_to(root.resolve()):
                complaints.append(f"{number}: broken link: {target}")
            elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
                complaints.append(f"{number}: no such heading: {target}")
    return complaints


def class_names(source: str) -> list[str]:
    """Return the public classes that a module defines at its top level."""
    return [
        node.name
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]


def import_cycle(imports: Mapping[str, Iterable[str]]) -> list[str]:
    """Return modules that import each other in a circle, or nothing."""
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_of(module: Path) -> Path:
    """Return where the tests of a module are: below the same folders."""
    return Path("tests", *module.parent.parts, f"test_{module.stem}.py")
