"""Rows with a group or two scores: which leaf each is in, and surveys of them to refuse."""

from collections.abc import Callable
from copy import deepcopy
from fractions import Fraction
from typing import Any

from fedassay import Grid
from fedassay.files import canonical
from fedassay.survey_json import survey_from_bytes
from tests.vectors.surveys import local

Content = dict[str, Any]
NAMES = ["F", "M", "a b", 'say "x"', "Zo\u00eb"]
THREE = Grid.explicit([0, 0.1, 0.5, 1])


def grouped() -> Content:
    """Three cells for each of five names, for rows that say nothing and for all others."""
    content = local("grr", Fraction(5), Grid.uniform(21)).to_json()
    return content | {"grid": THREE.to_json(), "groups": {"column": "sex", "names": NAMES}}


def paired() -> Content:
    content = local("oue", Fraction(1), Grid.uniform(6)).to_json()
    grids = {"first": Grid.uniform(2).to_json(), "second": THREE.to_json()}
    return content | {"grid": {"kind": "pair", "names": ["old", "new-2.1"], **grids}}


# label, score, second score, group, and by hand: label x leaves + part x cells + cell, or
# label x leaves + cell of the first x cells of the second + cell of the second.
GROUPED_ROWS = [
    [0, 0.0, None, "F", 0],
    [1, 0.3, None, "M", 21 + 3 + 1],
    [1, 0.1, None, " M ", 21 + 3],
    [0, 0.9, None, "a b", 6 + 2],
    [0, 0.5, None, 'say "x"', 9 + 1],
    [1, 1.0, None, "\u2003Zo\u00eb\u00a0", 21 + 12 + 2],
    [0, 0.2, None, None, 15 + 1],
    [0, 0.2, None, "  ", 15 + 1],
    [1, 0.2, None, "X", 21 + 18 + 1],
    [1, 0.2, None, "f", 21 + 18 + 1],
    [1, 0.2, None, "(missing)", 21 + 18 + 1],
]
PAIRED_ROWS = [
    [0, 0.0, 0.0, None, 0],
    [1, 0.5, 0.5, None, 6 + 1],
    [1, 0.6, 0.05, None, 6 + 3],
    [0, 1.0, 1.0, None, 5],
]


def put(*path: str, value: object) -> Callable[[Content], None]:
    def change(content: Any) -> None:
        for name in path[:-1]:
            content = content[name]
        content[path[-1]] = value

    return change


_NAMED, _JOINT = "groups are named once each", "two models are asked for by joint cells"
_ONE = {"kind": "one", "client_fractions": ["1"], "by_hash": False}
BAD: list[tuple[str, Content, str, Callable[[Content], None]]] = [
    ("a group twice", grouped(), _NAMED, put("groups", "names", value=["F", "F"])),
    ("no group", grouped(), _NAMED, put("groups", "names", value=[])),
    ("groups of no list", grouped(), _NAMED, put("groups", "names", value="F")),
    ("a group of no text", grouped(), _NAMED, put("groups", "names", value=[1])),
    ("a group of nothing", grouped(), _NAMED, put("groups", "names", value=[""])),
    ("a group with a blank", grouped(), _NAMED, put("groups", "names", value=["F\u2003"])),
    ("a group that is no group", grouped(), _NAMED, put("groups", "names", value=["(unknown)"])),
    ("a group of many letters", grouped(), _NAMED, put("groups", "names", value=["x" * 201])),
    ("many groups", grouped(), "at most 100 values",
     put("groups", "names", value=[str(i) for i in range(101)])),
    ("groups of no column", grouped(), "1 to 200 letters", put("groups", "column", value="")),
    ("an unknown field in groups", grouped(), "unknown field", put("groups", "more", value=1)),
    ("leaves of other groups", grouped(), "reach", put("groups", "names", value=[*NAMES, "X"])),
    ("a model twice", paired(), "two models have two", put("grid", "names", value=["a", "a"])),
    ("one model", paired(), "two models are compared", put("grid", "names", value=["a"])),
    ("a blank in a model", paired(), "a model's name has", put("grid", "names", value=["a", " b"])),
    ("an unknown field in a pair", paired(), "unknown field", put("grid", "third", value=1)),
    ("a pair of one grid", paired(), "is missing", lambda content: content["grid"].pop("second")),
    ("a pair of pairs", paired(), "", put("grid", "first", value=paired()["grid"])),
    ("two models on one level each", paired(), _JOINT, put("level_policy", value=_ONE)),
    ("two models in groups", paired(), "", put("groups", value={"column": "a", "names": ["F"]})),
]  # fmt: skip


def leaf_vectors() -> dict[str, list[Any]]:
    """Good and bad ones."""
    good = [
        {"name": name, "survey": content, "fingerprint": fingerprint(content), "rows": rows}
        for name, content, rows in (
            ("groups", grouped(), GROUPED_ROWS),
            ("two models", paired(), PAIRED_ROWS),
        )
    ]
    bad = []
    for name, base, says, change in BAD:
        content = deepcopy(base)
        change(content)
        bad.append({"name": name, "text": canonical(content).decode(), "says": says})
    return {"good": good, "bad": bad}


def fingerprint(content: Content) -> str:
    return survey_from_bytes(canonical(content)).fingerprint.hex()
