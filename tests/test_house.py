"""The house rules hold, and each of them can fail: every rule is first shown a planted breach."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import grimp
import pytest

from tests import house
from tests.house import ROOT

FILES = house.repository_files()
MODULES = [path for path in FILES if path.suffix == ".py" and ROOT / "service" in path.parents]
TESTS = [path for path in FILES if path.suffix == ".py" and ROOT / "tests" in path.parents]
PAGES = [path for path in FILES if path.suffix == ".md"]


def _outside(modules: list[Path], folder: str) -> list[Path]:
    return [path for path in modules if ROOT / folder not in path.parents]


def _within(modules: list[Path], folder: str) -> list[Path]:
    return [path for path in modules if ROOT / folder in path.parents]


def _complaints(rule: Callable[[str], list[str]], paths: list[Path]) -> list[str]:
    assert paths, "a rule that looks at nothing holds nothing"
    return [
        f"{path.relative_to(ROOT)}:{complaint}"
        for path in paths
        for complaint in rule(path.read_text(errors="ignore"))
    ]


def test_the_repository_is_what_git_would_track() -> None:
    names = {str(path.relative_to(ROOT)) for path in FILES}
    assert {
        "pyproject.toml",
        "service/discreet/errors.py",
        "tests/test_house.py",
        ".ci/run",
    } <= names
    assert not [name for name in names if name.startswith((".venv/", ".git/")) or ".pyc" in name]


@pytest.mark.parametrize(
    "breach",
    [
        "index-url = https://" + "pypi" + ".org/simple",
        "see files." + "python" + "hosted.org",
        "https://" + "registry" + ".npmjs.org/k6",
        "deb http://" + "deb" + ".debian.org bookworm main",
        "data in /" + "home/ada/data",
        "data in /" + "Users/ada/data",
        "cache: /" + "root/.cache",
        "built in /" + "work/main",
        "copied from .." + "/shared/x",
        "as asked in is" + "sue 12",
    ],
)
def test_a_named_place_is_found(breach: str) -> None:
    assert house.named_places(f"fine\n{breach}\n")[0].startswith("2: ")


def test_ordinary_text_names_no_place() -> None:
    ordinary = "see https://example.org/home/page, service/work/x.py and the issues page\n"
    assert house.named_places(ordinary) == []


def test_no_file_names_a_registry_a_machine_or_a_ticket() -> None:
    assert _complaints(house.named_places, FILES) == []


@pytest.mark.parametrize(
    "breach", ["# TO" + "DO later", "# FIX" + "ME", "raise NotImplemented" + "Error"]
)
def test_unfinished_work_is_found(breach: str) -> None:
    assert house.unfinished(f"pass\n{breach}") != []


def test_nothing_is_unfinished() -> None:
    assert _complaints(house.unfinished, MODULES) == []


@pytest.mark.parametrize(
    "breach",
    ["@pytest.mark." + "skip", "@pytest.mark." + "skipif(True)", "pytest." + "xfail('flaky')"],
)
def test_a_silent_skip_is_found(breach: str) -> None:
    assert house.silent_skips(breach) != []


def test_no_test_is_left_out_silently() -> None:
    others = [path for path in TESTS if path.name != "requirements.py"]
    assert _complaints(house.silent_skips, others) == []


def test_a_long_module_is_found() -> None:
    assert house.too_long("\n" * (house.LONGEST_MODULE + 1)) != []


def test_no_module_is_two_things() -> None:
    assert _complaints(house.too_long, MODULES) == []


def test_a_vague_name_is_found() -> None:
    assert house.vague_name(Path("service/discreet/api/utils.py")) != []


def test_every_name_says_what_lives_there() -> None:
    assert [str(path) for path in MODULES if house.vague_name(path)] == []


def test_a_missing_docstring_is_found() -> None:
    assert house.no_docstring("x = 1\n'too late'\n") != []


def test_every_module_says_what_it_is() -> None:
    assert _complaints(house.no_docstring, MODULES) == []


@pytest.mark.parametrize(
    "breach",
    [
        "np.random.laplace(0, 1)",
        "rng.normal(size=3)",
        "generator.standard_normal()",
        "random.gauss(0, 1)",
        "scipy.stats.laplace.rvs(size=2)",
        "from numpy.random import gumbel",
    ],
)
def test_float_noise_is_found(breach: str) -> None:
    assert house.float_noise(breach) != []


def test_density_functions_and_exact_samplers_are_no_float_noise() -> None:
    assert (
        house.float_noise("stats.laplace.cdf(x); noise.discrete_laplace(scale=2.0, size=1)") == []
    )


def test_no_float_noise_outside_simulations() -> None:
    assert _complaints(house.float_noise, _outside(MODULES, "service/discreet/research")) == []


@pytest.mark.parametrize(
    "breach",
    [
        "import random",
        "from random import choice",
        "from numpy import random",
        "from numpy.random import default_rng",
        "import numpy as np\nrng = np.random.default_rng(1)",
        "def f(rng: 'np.random.Generator') -> None: ...\nnp.random.Generator",
    ],
)
def test_reproducible_randomness_is_found(breach: str) -> None:
    assert house.reproducible_randomness(breach) != []


def test_the_operating_systems_randomness_is_allowed() -> None:
    assert house.reproducible_randomness("import os, secrets\nos.urandom(16)") == []


def test_privacy_draws_from_the_operating_system_only() -> None:
    assert (
        _complaints(house.reproducible_randomness, _within(MODULES, "service/discreet/privacy"))
        == []
    )


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# A heading, `twice`\n\n# A heading, twice\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[good](other.md) [good](other.md#a-heading-twice) [twin](other.md#a-heading-twice-1)\n"
        "[web](https://example.org/nowhere.md) `[code](nowhere.md)` [self](#here)\n"
        "```\n[fenced](nowhere.md)\n```\n"
        "# Here\n"
        "[gone](nowhere.md)\n"
        "[moved](other.md#elsewhere)\n"
        "[outside](../../../outside.md)\n"
        '<img src="gone.png">\n'
        "[ref]: gone.md\n"
    )
    found = house.broken_links(page, root=tmp_path)
    assert [int(complaint.split(":")[0]) for complaint in found] == [7, 8, 9, 10, 11]


def test_every_link_in_the_documentation_resolves() -> None:
    assert {ROOT / "README.md", ROOT / "CONTRIBUTING.md"} <= set(PAGES)
    found = {str(page.relative_to(ROOT)): house.broken_links(page) for page in PAGES}
    assert {page: complaints for page, complaints in found.items() if complaints} == {}


def _lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Hold the contracts of this folder's pyproject against this folder's `service`."""
    program = (
        "import sys; from importlinter.cli import lint_imports;"
        "sys.exit(lint_imports(no_cache=True, no_logo=True))"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder / "service")},
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_the_layers_hold() -> None:
    answer = _lint_imports(ROOT)
    assert answer.returncode == 0, answer.stdout


@pytest.mark.parametrize(
    ("module", "breach"),
    [
        ("service/discreet/privacy/planted.py", "import redis"),
        ("service/discreet/families/planted.py", "import discreet.decisions"),
        ("service/discreet/families/planted.py", "from discreet.state import redis_store"),
        ("service/discreet/families/p_dap/planted.py", "import discreet.families.fclub"),
        ("service/discreet/state/planted.py", "import discreet.families"),
        ("service/discreet/decisions/planted.py", "import discreet.api"),
        ("service/discreet/decisions/planted.py", "import discreet.research"),
        ("service/discreet/decisions/planted.py", "import discreet.metrics"),
        ("service/discreet/commands/serve.py", "import discreet.research.noise"),
        ("service/discreet/commands/serve.py", "import discreet.audit"),
        ("service/discreet/planted.py", "import discreet.errors  # in no layer"),
    ],
)
def test_a_breached_layer_is_found(tmp_path: Path, module: str, breach: str) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "service", tmp_path / "service")
    with (tmp_path / module).open("a") as planted:
        planted.write(f'"""Planted."""\n\n{breach}\n')
    answer = _lint_imports(tmp_path)
    assert answer.returncode == 1
    culprit = module.removeprefix("service/discreet/").removesuffix(".py").replace("/", ".")
    assert culprit in answer.stdout, answer.stdout


def test_a_circle_of_imports_is_found() -> None:
    circle = {"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}
    assert set(house.import_cycle(circle)) == {"a", "b", "c"}
    assert house.import_cycle({"a": ["b", "c"], "b": ["c"]}) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports for type checking alone count too: they are a dependency all the same."""
    graph = grimp.build_graph("discreet", exclude_type_checking_imports=False)
    imports = {each: graph.find_modules_directly_imported_by(each) for each in graph.modules}
    assert house.import_cycle(imports) == []


def test_public_class_names_are_unique() -> None:
    assert house.class_names("class A: ...\nclass _B: ...\ndef f():\n    class C: ...") == ["A"]
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for name in house.class_names(path.read_text()):
            places.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


REPRODUCE = "tests/research/reproduce"
ELSEWHERE = {
    "api/collaborative_schemas.py": "tests/api/test_collaborative.py",
    "api/items_schemas.py": "tests/api/test_items.py",
    "api/experiments_schemas.py": "tests/api/test_experiments.py",
    "api/family_routes.py": "tests/api/test_documentation.py",
    "api/peers_schemas.py": "tests/api/test_peers.py",
    "api/personalizer_schemas.py": "tests/api/test_personalizer.py",
    "api/voters_schemas.py": "tests/api/test_voters.py",
    "hub/errors.py": "tests/hub/test_routes.py",
    "hub/schema.py": "tests/hub/test_database.py",
    "research/reproduce/epicrec_tables.py": f"{REPRODUCE}/test_epicrec.py",
    "research/reproduce/epicrec_trials.py": f"{REPRODUCE}/test_epicrec.py",
    "research/reproduce/fclub_tables.py": f"{REPRODUCE}/test_fclub.py",
    "research/reproduce/mirror_descent_trials.py": f"{REPRODUCE}/test_mirror_descent.py",
    "state/client.py": "tests/loadtests/test_store_clients.py",
    "state/awaiting.py": "tests/contracts/test_stores_awaiting.py",
    "state/memory_awaiting.py": "tests/contracts/test_stores_awaiting.py",
    "state/memory_streams.py": "tests/contracts/test_stores_streams.py",
    "state/memory_sums.py": "tests/contracts/test_stores_sums.py",
    "state/redis_awaiting.py": "tests/contracts/test_stores_awaiting.py",
    "state/memory_values.py": "tests/contracts/test_stores_values.py",
    "state/redis_streams.py": "tests/contracts/test_stores_streams.py",
    "state/store_values.py": "tests/contracts/test_stores_values.py",
    "state/stores.py": "tests/contracts/test_stores.py",
    # They are tests themselves: this runs every claim and every planted fault.
    "audit/closed_loop": "tests/test_audit_command.py",
    "audit/families": "tests/test_audit_command.py",
}
"""Modules whose promises are tested under another name: protocols, and parts of one boundary."""


CLIENT = ROOT / "service" / "discreet_client"
CLIENT_TESTS = {
    "answers": "tests/client/test_requests.py",
    "problems": "tests/client/test_requests.py",
    "requests": "tests/client/test_requests.py",
    "client": "tests/client/test_clients.py",
    "async_client": "tests/client/test_clients.py",
}


def test_every_module_has_a_test_file_of_its_own() -> None:
    package = ROOT / "service" / "discreet"
    missing = []
    for path in MODULES:
        if CLIENT in path.parents:
            if path.stem != "__init__" and not (ROOT / CLIENT_TESTS[path.stem]).exists():
                missing.append(str(path))
            continue
        module = path.relative_to(package)
        if module.stem in ("__init__", "__main__"):
            continue
        places = (module, *module.parents)
        known = [ELSEWHERE[str(place)] for place in places if str(place) in ELSEWHERE]
        tests = known[0] if known else house.test_of(module)
        if not (ROOT / tests).exists():
            missing.append(str(module))
    assert missing == []
    gone = [name for name in ELSEWHERE if not (package / name).exists()]
    assert gone == [], "modules that are named here and are not there"
