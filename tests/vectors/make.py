"""Write all vectors: `python -m tests.vectors.make`.

Expected bytes of reports are put together here from their definition, bit by bit, and not by
the code that they test.
"""

import hashlib
import json
import secrets
import struct
import zlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from fedassay import Survey
from fedassay.cut_levels import CutLevels
from fedassay.files import canonical
from fedassay.hierarchy import SharedCuts
from fedassay.level_draw import hashed_level, levels_of_reports
from fedassay.level_policy import OneLevel
from fedassay.mechanisms import RandomizedResponse, UnaryEncoding
from fedassay.mechanisms.rational import scaled_exp
from fedassay.survey_steps import FirstOfTwo
from tests.randomness import ScriptedRandomness
from tests.vectors.bad_surveys import bad_surveys
from tests.vectors.canonical_cases import BAD, GOOD, NUMBERS
from tests.vectors.leaves import leaf_vectors
from tests.vectors.reports import report_vectors
from tests.vectors.surveys import LOCAL, SURVEYS

FOLDER = Path(__file__).parent
Vector = dict[str, Any]


def survey_vector(name: str, survey: Survey) -> Vector:
    text = canonical(survey.to_json())
    inner = survey.grid.edges[1:-1]
    picked = inner[np.linspace(0, len(inner) - 1, min(len(inner), 12)).astype(int)]
    near = np.concatenate([np.nextafter(picked, 0), picked, np.nextafter(picked, 1)])
    scores = sorted({0.0, 5e-324, 0.25, 0.3, 0.5, 1.0, *near.tolist()})
    return {
        "name": name,
        "survey": survey.to_json(),
        "canonical": text.decode(),
        "fingerprint": hashlib.sha256(text).hexdigest(),
        "epsilon": parts_of(survey.epsilon),
        "total_epsilon": parts_of(survey.epsilon if survey.step is None else TOTALS[name]),
        "edges_sha256": hashlib.sha256(survey.grid.edges.astype(">f8").tobytes()).hexdigest(),
        "levels": [
            {
                "cells": survey.hierarchy.cells_per_level[level],
                "starts": starts_of(survey, level)[:20],
                **positives_of(survey, level),
                "probability": str(getattr(mechanism, "numerator", "")),
            }
            for level, mechanism in enumerate(survey.mechanisms)
        ],
        "cells_of_scores": [[score, cell_of(survey, score)] for score in scores],
    }


TOTALS = {
    "first of two, by hash": Fraction(5),
    "second of two, cells for each label": Fraction(5),
    "second of two, as many cells as leaves, empty clients": Fraction(1),
    "first of two, shared noise": Fraction(1),
    "second of two, weighted sums": Fraction(1),
    "first of two, a client is the unit": Fraction(5),
}


def parts_of(epsilon: Fraction | None) -> list[str] | None:
    return None if epsilon is None else [str(epsilon.numerator), str(epsilon.denominator)]


def starts_of(survey: Survey, level: int, label: int = 0) -> list[int]:
    """The first leaf of each cell of a label; weighted sums are one cell of all leaves."""
    levels = survey.hierarchy
    if isinstance(levels, CutLevels):
        return list(levels.cuts[level][label]) if level < len(levels.cuts) else [0]
    assert isinstance(levels, SharedCuts)
    return [int(start) for start in levels.starts(level)]


def positives_of(survey: Survey, level: int) -> Vector:
    """Where positives have cells of their own."""
    if not isinstance(survey.hierarchy, CutLevels):
        return {}
    return {"starts_of_positives": starts_of(survey, level, 1)[:20]}


def cell_of(survey: Survey, score: float) -> int:
    """The cell (lo, hi] that holds a score, by going through all of them."""
    edges = survey.grid.edges
    return max(0, int((edges < score).sum()) - 1)


def level_vector(survey: Survey) -> Vector:
    ids = ["anna", "bert", "", "Zoë", "客户 7", *(f"client {i}" for i in range(20))]
    assert isinstance(survey.level_policy, OneLevel)
    ends = [0, 2**32 - 1]
    total = Fraction(0)
    for share in survey.level_policy.client_fractions[:-1]:
        total += share
        ends += [int(total * 2**32) + step for step in (-1, 0, 1)]
    words = np.array(ends, dtype="<u4")
    levels = levels_of_reports(survey, len(ends), ScriptedRandomness(words.tobytes()))
    return {
        "survey": survey.to_json(),
        "ids": [[each, hashed_level(survey, each)] for each in ids],
        "words": [[word, int(level)] for word, level in zip(ends, levels, strict=True)],
    }


def is_asked(survey: Survey, name: str) -> bool:
    """Whether a name's hash lies in this survey's part of [0, 1): the first one's comes first."""
    step = survey.step
    if step is None or not survey.is_local:
        return True
    is_first = isinstance(step, FirstOfTwo)
    first = survey.fingerprint if isinstance(step, FirstOfTwo) else step.first
    digest = hashlib.sha256(first + b"step" + name.encode()).hexdigest()
    mark = Fraction(int(digest[:16], 16), 2**64)
    return mark < step.client_fraction if is_first else mark >= 1 - step.client_fraction


def step_vector(survey: Survey) -> Vector:
    names = ["anna", "bert", "", "Zoë", "客户 7", *(f"north:{row}" for row in range(25))]
    return {
        "survey": survey.to_json(),
        "names": [[name, is_asked(survey, name)] for name in names],
    }


def probability_vector(epsilon: Fraction) -> Vector:
    return {
        "epsilon": str(epsilon),
        "scaled_exp": str(scaled_exp(epsilon)),
        "oue": str(UnaryEncoding(epsilon).numerator),
        "grr": [
            [2 * cells + nothing, str(RandomizedResponse(epsilon, cells, bool(nothing)).numerator)]
            for cells in (1, 2, 16, 2**20)
            for nothing in (0, 1)
        ],
    }


EXAMPLES = [[0, 0.0], [0, 0.05], [0, 0.3], [0, 0.31], [0, 0.5], [0, 0.97], [1, 0.2], [1, 0.5],
            [1, 0.77], [1, 0.9], [1, 1.0]]  # fmt: skip


def answer_vector(name: str, survey: Survey, examples: list[list[float]]) -> Vector:
    """An answer with the noise that was drawn for it, and its bytes from their definition."""
    client_id = "anna" if "by hash" in name or survey.step is not None else None
    asked = [row for i, row in enumerate(examples) if is_asked(survey, f"{client_id}:{i}")]
    hits = sorted(int(y) * survey.grid.cells + cell_of(survey, s) for y, s in asked) or [-1]
    drawn: Vector = {}
    if name == "a client is the unit":
        drawn["kept"] = secrets.randbelow(len(hits))
        hits = [hits[drawn["kept"]]]
    drawn["order"] = list(range(len(hits)))
    secrets.SystemRandom().shuffle(drawn["order"])
    sent = [hits[i] for i in drawn["order"]]
    if client_id is not None and "by hash" in name:
        levels = [hashed_level(survey, client_id)] * len(sent)
    elif isinstance(survey.level_policy, OneLevel):
        drawn["level_words"] = [secrets.randbits(32) for _ in sent]
        words = np.array(drawn["level_words"], dtype="<u4").tobytes()
        levels = levels_of_reports(survey, len(sent), ScriptedRandomness(words)).tolist()
    else:
        levels = [0] * len(sent)
    drawn |= {"reports": [], "report_ids": []}
    message = b""
    for level, mechanism in enumerate(survey.mechanisms):
        rows = []
        cells = max(len(starts_of(survey, level, label)) for label in (0, 1))
        for hit in (hit for hit, k in zip(sent, levels, strict=True) if k == level):
            label, leaf = divmod(hit, survey.grid.cells)
            cell = sum(start <= leaf for start in starts_of(survey, level, label)) - 1
            place = -1 if hit < 0 else label * cells + cell
            noise = draw_noise(mechanism, 2 * cells, place)
            drawn["reports"].append({"level": level, "place": place, **noise})
            rows.append(row_of(mechanism, noise, 2 * cells, place))
        if rows:
            report_id = secrets.token_bytes(16)
            drawn["report_ids"].append(report_id.hex())
            header = b"FASR" + bytes([2, 2, level, 0]) + survey.fingerprint + report_id
            block = header + struct.pack("<I", len(rows)) + b"".join(rows)
            message += block + struct.pack("<I", zlib.crc32(block))
    return {
        "name": f"{name}, {len(examples)} examples",
        "survey": survey.to_json(),
        "client_id": client_id,
        "examples": examples,
        "drawn": drawn,
        "bytes": message.hex(),
    }


def draw_noise(mechanism: object, d: int, place: int) -> Vector:
    if isinstance(mechanism, RandomizedResponse):
        word, other = secrets.randbits(64), secrets.randbelow(mechanism.values - 1)
        return {"word": f"{word:016x}", "other": other}
    assert isinstance(mechanism, UnaryEncoding)
    others = "".join(
        str(int(secrets.randbelow(2**24) < mechanism.numerator)) for _ in range(d - (place >= 0))
    )
    return {"others": others} if place < 0 else {"own": secrets.randbits(1), "others": others}


def row_of(mechanism: object, noise: Vector, d: int, place: int) -> bytes:
    if isinstance(mechanism, RandomizedResponse):
        own = d if place < 0 else place
        others = [value for value in range(mechanism.values) if value != own]
        is_kept = int(noise["word"], 16) < mechanism.numerator
        return struct.pack("<I", own if is_kept else others[noise["other"]])
    bits = noise["others"]
    if place >= 0:
        bits = bits[:place] + str(noise["own"]) + bits[place:]
    return int(bits[::-1], 2).to_bytes(-(-d // 8), "little")


def write(name: str, **vectors: list[Any]) -> None:
    """One vector on each line, so that a change shows as the change of a line."""
    parts = [
        f'"{kind}": [\n' + ",\n".join(json.dumps(each) for each in listed) + "\n]"
        for kind, listed in vectors.items()
    ]
    (FOLDER / f"{name}.json").write_text("{" + ",\n".join(parts) + "}\n")


def asks(survey: Survey) -> bool:
    """Whether the client of the vectors answers, where it holds nothing."""
    return is_asked(survey, "anna")


def main() -> None:
    write("canonical", numbers=NUMBERS, good=GOOD, bad=BAD)
    good = [survey_vector(name, survey) for name, survey in SURVEYS.items()]
    write("surveys", good=good, bad=bad_surveys())
    one_level = [s for s in LOCAL.values() if isinstance(s.level_policy, OneLevel)]
    write("levels", good=[level_vector(survey) for survey in one_level])
    write("leaves", **leaf_vectors())
    stepped = [survey for survey in SURVEYS.values() if survey.step is not None]
    write("steps", good=[step_vector(survey) for survey in stepped])
    epsilons = ["1/1000000000", "1/1000", "1/3", "1/2", "1", "2", "5", "17/2", "50"]
    write("probabilities", good=[probability_vector(Fraction(each)) for each in epsilons])
    answers = [answer_vector(name, survey, EXAMPLES) for name, survey in LOCAL.items()]
    empty = [(name, each) for name, each in LOCAL.items() if each.allow_empty and asks(each)]
    answers += [answer_vector(name, survey, []) for name, survey in empty]
    write("answers", good=answers)
    write("reports", **report_vectors())


if __name__ == "__main__":
    main()
