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
from fedassay.files import canonical
from fedassay.hierarchy import SharedCuts
from fedassay.level_draw import hashed_level, levels_of_reports
from fedassay.mechanisms import RandomizedResponse, UnaryEncoding
from fedassay.mechanisms.rational import scaled_exp
from fedassay.survey import OneLevel
from tests.randomness import ScriptedRandomness
from tests.vectors.bad_surveys import bad_surveys
from tests.vectors.canonical_cases import BAD, GOOD, NUMBERS
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
    epsilon = survey.epsilon
    return {
        "name": name,
        "survey": survey.to_json(),
        "canonical": text.decode(),
        "fingerprint": hashlib.sha256(text).hexdigest(),
        "epsilon": None if epsilon is None else [str(epsilon.numerator), str(epsilon.denominator)],
        "edges_sha256": hashlib.sha256(survey.grid.edges.astype(">f8").tobytes()).hexdigest(),
        "levels": [
            {
                "cells": survey.hierarchy.cells_per_level[level],
                "starts": starts_of(survey, level)[:20],
                "probability": str(getattr(mechanism, "numerator", "")),
            }
            for level, mechanism in enumerate(survey.mechanisms)
        ],
        "cells_of_scores": [[score, cell_of(survey, score)] for score in scores],
    }


def starts_of(survey: Survey, level: int) -> list[int]:
    assert isinstance(survey.hierarchy, SharedCuts)
    return [int(start) for start in survey.hierarchy.starts(level)]


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
    client_id = "anna" if "by hash" in name else None
    hits = sorted(int(y) * survey.grid.cells + cell_of(survey, s) for y, s in examples) or [-1]
    drawn: Vector = {}
    if name == "a client is the unit":
        drawn["kept"] = secrets.randbelow(len(hits))
        hits = [hits[drawn["kept"]]]
    drawn["order"] = list(range(len(hits)))
    secrets.SystemRandom().shuffle(drawn["order"])
    sent = [hits[i] for i in drawn["order"]]
    if client_id is not None:
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
        starts = starts_of(survey, level)
        for hit in (hit for hit, k in zip(sent, levels, strict=True) if k == level):
            label, leaf = divmod(hit, survey.grid.cells)
            cell = sum(start <= leaf for start in starts) - 1
            place = -1 if hit < 0 else label * len(starts) + cell
            noise = draw_noise(mechanism, 2 * len(starts), place)
            drawn["reports"].append({"level": level, "place": place, **noise})
            rows.append(row_of(mechanism, noise, 2 * len(starts), place))
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


def main() -> None:
    write("canonical", numbers=NUMBERS, good=GOOD, bad=BAD)
    good = [survey_vector(name, survey) for name, survey in SURVEYS.items()]
    write("surveys", good=good, bad=bad_surveys())
    one_level = [s for s in LOCAL.values() if isinstance(s.level_policy, OneLevel)]
    write("levels", good=[level_vector(survey) for survey in one_level])
    epsilons = ["1/1000000000", "1/1000", "1/3", "1/2", "1", "2", "5", "17/2", "50"]
    write("probabilities", good=[probability_vector(Fraction(each)) for each in epsilons])
    answers = [answer_vector(name, survey, EXAMPLES) for name, survey in LOCAL.items()]
    empty = [(name, survey) for name, survey in LOCAL.items() if survey.allow_empty]
    answers += [answer_vector(name, survey, []) for name, survey in empty]
    write("answers", good=answers)
    write("reports", **report_vectors())


if __name__ == "__main__":
    main()
