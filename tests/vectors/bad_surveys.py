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
FIRST = "first of two, by hash"
CHOSEN = "second of two, cells for each label"
SHARED = "first of two, shared noise"
WEIGHTED = "second of two, weighted sums"


def put(*path: str | int, value: object) -> Change:
    """Set one field, deep inside."""

    def change(content: Any) -> None:
        for name in path[:-1]:
            content = content[name]
        content[path[-1]] = value

    return change


def drop(name: str) -> Change:
    return lambda content: content.pop(name)


def weighted_locally(content: Any) -> None:
    """A weighted sum in place of the second level, with a mechanism that fits the first."""
    content["hierarchy"]["levels"].pop()
    content["hierarchy"]["weights"] = [[1] * 6, [2] * 6]
    content["mechanisms"][1] = content["mechanisms"][0]


def five_levels(content: Any) -> None:
    content["hierarchy"]["levels"] *= 2
    content["mechanisms"] = [{"kind": "polya", "epsilon": "1/10"}] * 5


BAD: list[tuple[str, str, str, Change]] = [
    ("another version", OUE, "expected format", put("format", value="fedassay.survey/9")),
    ("no format", OUE, "expected format", drop("format")),
    ("an unknown field", OUE, "unknown field", put("noise", value="none")),
    ("an unknown field in the grid", OUE, "unknown field", put("grid", "offset", value=0)),
    ("an unknown field in a mechanism", OUE, "unknown field", put("mechanisms", 0, "p", value="1")),
    ("an unknown field in the levels", OUE, "unknown field", put("hierarchy", "step", value=1)),
    ("an unknown field in the unit", OUE, "unknown field", put("unit", "group", value=1)),
    ("sums of reports that protect themselves", OUE, "sum_only",
     put("sum_only", value=True)),
    ("the latest rows of an example", OUE, "unknown field", put("unit", "keep", value="latest")),
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
    ("cuts that fall", CHOSEN, "rising leaves",
     put("hierarchy", "levels", 0, 0, value=[0, 5, 2])),
    ("a cut twice", CHOSEN, "rising leaves", put("hierarchy", "levels", 0, 1, value=[0, 3, 3])),
    ("cells without the first leaf", CHOSEN, "start at leaf 0",
     put("hierarchy", "levels", 0, 1, value=[1, 3])),
    ("no cells", CHOSEN, "start at leaf 0", put("hierarchy", "levels", 0, 1, value=[])),
    ("a cut past the leaves", CHOSEN, "first leaf of a cell",
     put("hierarchy", "levels", 0, 1, value=[0, 6])),
    ("a cut before the leaves", CHOSEN, "first leaf of a cell",
     put("hierarchy", "levels", 0, 1, value=[0, -1])),
    ("half a cut", CHOSEN, "two lists of whole numbers",
     put("hierarchy", "levels", 0, 1, value=[0, 2.5])),
    ("a cut of truth", CHOSEN, "two lists of whole numbers",
     put("hierarchy", "levels", 0, 1, value=[0, True])),
    ("cells of one label", CHOSEN, "two lists of whole numbers",
     put("hierarchy", "levels", 0, value=[[0, 3]])),
    ("cells of three labels", CHOSEN, "chosen levels are",
     put("hierarchy", "levels", 0, value=[[0], [0], [0]])),
    ("more cuts than leaves", CHOSEN, "two lists of whole numbers",
     put("hierarchy", "levels", 0, 0, value=[0, 1, 2, 3, 4, 5, 5])),
    ("no chosen level", CHOSEN, "chosen levels are from 1", put("hierarchy", "levels", value=[])),
    ("too many chosen levels", CHOSEN, "at most 32",
     put("hierarchy", "levels", value=[[[0], [0]]] * 33)),
    ("an unknown field in chosen levels", CHOSEN, "unknown field",
     put("hierarchy", "fanouts", value=[6])),
    ("weights under local privacy", CHOSEN, "Drop the weights", weighted_locally),
    ("weights that are too heavy", WEIGHTED, "a weight must be",
     put("hierarchy", "weights", 1, 0, value=1025)),
    ("weights of nothing", WEIGHTED, "not all be 0",
     put("hierarchy", "weights", value=[[0] * 6, [0] * 6])),
    ("a weight too few", WEIGHTED, "one weight for each",
     put("hierarchy", "weights", 0, value=[1] * 5)),
    ("weights of one label", WEIGHTED, "two lists of whole numbers",
     put("hierarchy", "weights", value=[[1] * 6])),
    ("half a weight", WEIGHTED, "two lists of whole numbers",
     put("hierarchy", "weights", 0, 0, value=0.5)),
    ("no weights, as nothing", WEIGHTED, "chosen levels are",
     put("hierarchy", "weights", value=None)),
    ("chosen levels of one survey alone", CHOSEN, "levels are chosen for the second",
     drop("step")),
    ("chosen levels of a first survey", CHOSEN, "levels are chosen for the second",
     put("step", value={"kind": "first", "total_epsilon": "5", "client_fraction": "3/5"})),
    ("a tree in a second survey", SHARED, "levels are chosen for the second",
     lambda content: content["step"].update({"kind": "second", "first": "ab" * 32})),
    ("a third step", FIRST, "the first or the second of two", put("step", "kind", value="third")),
    ("a step of nothing", FIRST, "expected an object", put("step", value=None)),
    ("a step in a list", FIRST, "expected an object", put("step", value=["first"])),
    ("an unknown field in a step", FIRST, "unknown field", put("step", "first", value="ab" * 32)),
    ("a step without its share", FIRST, "is missing",
     lambda content: content["step"].pop("client_fraction")),
    ("a second survey of no first", CHOSEN, "is missing",
     lambda content: content["step"].pop("first")),
    ("a fingerprint cut short", CHOSEN, "fingerprint", put("step", "first", value="ab" * 31)),
    ("a fingerprint of other digits", CHOSEN, "fingerprint", put("step", "first", value="xy" * 32)),
    ("a fingerprint in capitals", CHOSEN, "", put("step", "first", value="AB" * 32)),
    ("no epsilon in all", FIRST, "must be positive", put("step", "total_epsilon", value="0")),
    ("an epsilon in all that is larger, under local privacy", FIRST, "answers one of the two",
     put("step", "total_epsilon", value="6")),
    ("everybody answers one of two", FIRST, "answers one of the two",
     put("step", "client_fraction", value="1")),
    ("a share of more than all", FIRST, "above 0 and at most 1",
     put("step", "client_fraction", value="6/5")),
    ("a share of no client", FIRST, "above 0 and at most 1",
     put("step", "client_fraction", value="0")),
    ("a share of no simple fraction", FIRST, "simple fraction",
     put("step", "client_fraction", value="1/1000000")),
    ("a step's share that is not in lowest terms", FIRST, "in one way",
     put("step", "client_fraction", value="2/10")),
    ("an epsilon in all that one survey spends", SHARED, "spends a part of the total",
     put("step", "total_epsilon", value="1/5")),
    ("an epsilon in all below what one survey spends", WEIGHTED, "spends a part of the total",
     put("step", "total_epsilon", value="3/5")),
    ("half of the clients, where noise is shared", SHARED, "all clients answer both",
     put("step", "client_fraction", value="1/2")),
    ("many levels of shared noise", WEIGHTED, "at most 4 levels", five_levels),
    ("exact sums in two steps", TREE, "exact sums need no second",
     put("step", value={"kind": "first", "total_epsilon": "1", "client_fraction": "1"})),
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
