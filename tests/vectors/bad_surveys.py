"""Surveys that must be refused, each with a part of the reason that both languages give."""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from fedassay.files import canonical
from tests.vectors.surveys import SURVEYS

Change = Callable[[dict[str, Any]], object]

OUE = "oue, one level"
GRR = "grr, empty clients"
HASHED = "tree of two levels, grr then oue, by hash"
INTERLEAVED = "interleaved, three levels"
FINE = "fine grid with thresholds"
OCTAVES = "octaves"
TREE = "leaves that the fan-outs do not fill"
NOISY = "distributed, each level pays"


def put(*path: str | int, value: object) -> Change:
    """Set one field, deep inside."""

    def change(content: Any) -> None:
        for name in path[:-1]:
            content = content[name]
        content[path[-1]] = value

    return change


def drop(name: str) -> Change:
    return lambda content: content.pop(name)


BAD: list[tuple[str, str, str, Change]] = [
    ("another version", OUE, "expected format", put("format", value="fedassay.survey/3")),
    ("no format", OUE, "expected format", drop("format")),
    ("an unknown field", OUE, "unknown field", put("noise", value="none")),
    ("an unknown field in the grid", OUE, "unknown field", put("grid", "offset", value=0)),
    ("an unknown field in a mechanism", OUE, "unknown field", put("mechanisms", 0, "p", value="1")),
    ("an unknown field in the levels", OUE, "unknown field", put("hierarchy", "step", value=1)),
    ("an unknown field in the unit", OUE, "unknown field", put("unit", "group", value=1)),
    ("a field is missing", OUE, "is missing", drop("allow_empty")),
    ("an unknown privacy model", OUE, "is one of secure", put("privacy", value="trusted")),
    ("privacy in a list", OUE, "is one of secure", put("privacy", value=["local"])),
    ("privacy without its mechanism", OUE, "privacy goes with", put("privacy", value="secure")),
    ("an unknown grid", OUE, "a grid is one of", put("grid", "kind", value="arcsine")),
    ("cells of no number", OUE, "whole number", put("grid", "cells", value="4")),
    ("half a cell", OUE, "whole number", put("grid", "cells", value=4.5)),
    ("a cubic grid that is too fine", "oue, bits that do not fill their bytes", "cells",
     put("grid", "cells", value=2**16 + 1)),
    ("too many edges", FINE, "between 2 and", put(
        "grid", value={"kind": "uniform", "cells": 2**20, "without": [], "with": [0.3]})),
    ("a fine grid that is too fine", FINE, "cells", put("grid", "cells", value=2**19 + 1)),
    ("octaves of half a part", OCTAVES, "78 times", put("grid", "cells", value=665)),
    ("octaves of no part", OCTAVES, "78 times", put("grid", "cells", value=2)),
    ("octaves of too many parts", OCTAVES, "cells", put("grid", "cells", value=78 * 4097 + 2)),
    ("edges that fall", "explicit edges", "edges", put("grid", "edges", value=[0, 0.5, 0.4, 1])),
    ("edges that stand twice", "explicit edges", "edges",
     put("grid", "edges", value=[0, 0.5, 0.5, 1])),
    ("edges that do not reach 1", "explicit edges", "from 0 to 1",
     put("grid", "edges", value=[0, 0.5, 0.9])),
    ("an outer edge is taken away", FINE, "inner edges", put("grid", "without", value=[0])),
    ("an edge is added that is there", FINE, "in one way", put("grid", "with", value=[0.5])),
    ("nothing is changed", FINE, "in one way",
     lambda content: content["grid"].update({"with": [], "without": []})),
    ("a change that is half said", FINE, "is missing", lambda content: content["grid"].pop("with")),
    ("fan-outs that do not reach", TREE, "reach", put("hierarchy", "fanouts", value=[4, 4])),
    ("a fan-out of one", TREE, "at least 2", put("hierarchy", "fanouts", value=[1, 64, 1])),
    ("no fan-out", TREE, "levels", put("hierarchy", "fanouts", value=[])),
    ("a step as wide as the leaves", INTERLEAVED, "step", put("hierarchy", "step", value=7)),
    ("interleaved levels for every client", INTERLEAVED, "interleaved levels are for",
     put("level_policy", value={"kind": "every"})),
    ("local privacy on every level", HASHED, "on one level",
     put("level_policy", value={"kind": "every"})),
    ("shares that do not add up", HASHED, "add up to 1",
     put("level_policy", "client_fractions", value=["1/7", "5/7"])),
    ("a share of nothing", HASHED, "must be positive",
     put("level_policy", "client_fractions", value=["0", "1"])),
    ("a share too few", HASHED, "share of clients",
     put("level_policy", "client_fractions", value=["1"])),
    ("shares that are not in lowest terms", HASHED, "in one way",
     put("level_policy", "client_fractions", value=["2/14", "6/7"])),
    ("a fraction as a number", HASHED, "must be a fraction",
     put("level_policy", "client_fractions", value=[0.5, 0.5])),
    ("by_hash of no truth", HASHED, "true or false", put("level_policy", "by_hash", value=1)),
    ("epsilon of nothing", OUE, "epsilon must be", put("mechanisms", 0, "epsilon", value="0")),
    ("epsilon too large", OUE, "epsilon must be", put("mechanisms", 0, "epsilon", value="51")),
    ("epsilon of no simple fraction", OUE, "simple fraction",
     put("mechanisms", 0, "epsilon", value="1/1000000001")),
    ("epsilon below zero", OUE, "must be a fraction",
     put("mechanisms", 0, "epsilon", value="-1")),
    ("q of less privacy", OUE, '"q" must be', put("mechanisms", 0, "q", value="4512088/16777216")),
    ("q over another power of two", OUE, '"q" must be',
     put("mechanisms", 0, "q", value="2256045/8388608")),
    ("p of fewer values", GRR, '"p" must be', put("allow_empty", value=False)),
    ("a mechanism too few", HASHED, "one mechanism per level",
     lambda content: content["mechanisms"].pop()),
    ("an unknown mechanism", OUE, "mechanisms are", put("mechanisms", 0, "kind", value="olh")),
    ("examples of the wrong unit", OUE, "max_examples", put("unit", "max_examples", value=2)),
    ("a unit of nothing", NOISY, "max_examples", put("unit", "max_examples", value=0)),
    ("more colluders than reports", NOISY, "colluders", put("colluders", value=1000)),
    ("no minimum", OUE, "minimum_reports", put("minimum_reports", value=0)),
    ("noise from one client", NOISY, "at least 2",
     lambda content: content.update(minimum_reports=1, colluders=0)),
    ("empty clients as a number", OUE, "true or false", put("allow_empty", value=0)),
    ("a digest in capitals", OUE, "model digest", put("model_digest", value="AB" * 32)),
]  # fmt: skip


def bad_surveys() -> list[dict[str, str]]:
    """The texts of all bad surveys, canonical but for what is wrong with them."""
    vectors = []
    for name, base, says, change in BAD:
        content = deepcopy(SURVEYS[base].to_json())
        change(content)
        vectors.append({"name": name, "text": canonical(content).decode(), "says": says})
    text = canonical(SURVEYS[OUE].to_json()).decode()
    twice = text.replace('"colluders":0', '"colluders":0,"colluders":0')
    vectors.append({"name": "a name stands twice", "text": twice, "says": ""})
    vectors.append({"name": "cut short", "text": text[:-1], "says": "cut short"})
    vectors.append({"name": "a list", "text": json.dumps([1]), "says": "expected format"})
    return vectors
