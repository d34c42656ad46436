"""Logs: read as they are, or refused with the row and the column."""

from pathlib import Path

import pytest

from discreet.errors import InvalidArgument
from discreet.families.contexts import NamedContextDocument, VectorContextDocument
from discreet.research.worlds.logged import Log, read_log

HEAD = "context_0,context_1,item,reward"


def read(tmp_path: Path, *lines: str, most: int | None = None) -> Log:
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_log(
        path, context=VectorContextDocument(dimensions=2), items=("a", "b, c"), most=most
    )


def test_a_log_without_propensities_is_uniform(tmp_path: Path) -> None:
    log = read(tmp_path, HEAD, "0,1,a,0.5", "", '0.25,0.5,"b, c",1')
    assert log.contexts.tolist() == [[0, 1], [0.25, 0.5]]
    assert log.items.tolist() == [0, 1]
    assert log.rewards.tolist() == [0.5, 1]
    assert log.propensities.tolist() == [0.5, 0.5]


def test_columns_may_stand_in_any_order_and_rows_may_be_enough(tmp_path: Path) -> None:
    lines = ("propensity,reward,item,context_1,context_0", "0.1,1,a,0.2,0.3", "0.9,0,a,0,0")
    log = read(tmp_path, *lines, most=1)
    assert len(log) == 1
    assert log.contexts.tolist() == [[0.3, 0.2]]
    assert log.propensities.tolist() == [0.1]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([HEAD], "no rows"),
        ([], "context_0 is missing"),
        (["context_0,item,reward", "0,a,1"], "context_1 is missing"),
        ([HEAD + ",propensty", "0,0,a,1,1"], "'propensty' is not known"),
        ([HEAD + ",reward", "0,0,a,1,1"], "reward is there twice"),
        ([HEAD, "0,0,a,1", "0,0,a"], "row 3: has 3 columns"),
        ([HEAD, "0,2,a,1"], "row 2, column context_1"),
        ([HEAD, "nan,0,a,1"], "row 2, column context_0"),
        ([HEAD, "0,0,z,1"], "row 2, column item: 'z'"),
        ([HEAD, "0,0,a,yes"], "row 2, column reward"),
        ([HEAD + ",propensity", "0,0,a,1,0"], "row 2, column propensity"),
        ([HEAD, '0,0,"a,1'], "row"),
        ([HEAD.replace(",", ";"), "0;0;a;1"], "separated by commas"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message) as refused:
        read(tmp_path, *lines)
    assert refused.value.argument == "--data"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="cannot be read"):
        read_log(tmp_path / "none.csv", context=VectorContextDocument(dimensions=1), items=("a",))
    (tmp_path / "log.csv").write_bytes(b"context_0,item,reward\n\xff")
    with pytest.raises(InvalidArgument, match="UTF-8"):
        read_log(tmp_path / "log.csv", context=VectorContextDocument(dimensions=1), items=("a",))


NAMED = NamedContextDocument.model_validate(
    {
        "fields": {
            "age": {"type": "number", "range": [0, 100]},
            "country": {"type": "category", "required": True},
            "member": {"type": "boolean"},
        }
    }
)
NAMED_HEAD = "context.age,context.country,context.member,item,reward"


def read_named(tmp_path: Path, *lines: str) -> Log:
    path = tmp_path / "named.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_log(path, context=NAMED, items=("a", "b"))


def test_named_fields_have_a_column_each_and_empty_cells_are_missing(tmp_path: Path) -> None:
    log = read_named(tmp_path, NAMED_HEAD, "31,CH,true,a,1", ",DE,0,b,0", "1e3,FR,,b,0")
    assert log.contexts == [
        {"age": 31.0, "country": "CH", "member": True},
        {"age": None, "country": "DE", "member": False},
        {"age": 1000.0, "country": "FR", "member": None},
    ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["context_0,item,reward", "0,a,1"], "context.age is missing"),
        ([NAMED_HEAD, "31,,true,a,1"], "row 2, column context.country: is required"),
        ([NAMED_HEAD, "old,CH,true,a,1"], "row 2, column context.age: must be a number"),
        ([NAMED_HEAD, "nan,CH,true,a,1"], "row 2, column context.age: must be a finite number"),
        ([NAMED_HEAD, "3,CH,perhaps,a,1"], "row 2, column context.member: must be true or false"),
    ],
)
def test_a_named_value_of_the_wrong_type_is_found(
    tmp_path: Path, lines: list[str], message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        read_named(tmp_path, *lines)
