"""Tables like the paper's, made here: a documented generator and really trained models."""

import hashlib
import io
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from fedassay.errors import FedassayError
from fedassay.examples import Examples, FloatArray
from fedassay.extras import needed_for
from fedassay.files import write_whole
from fedassay.reproduction.recipes import Learner, Recipe

FEATURES = 10
_SEED = 2_021
_BOOSTING: dict[str, Any] = {"n_estimators": 60, "learning_rate": 0.2, "random_state": 0}


def stand_in(
    recipe: Recipe, rows: int, *, say: Callable[[str], None] = lambda _: None
) -> tuple[Examples, str]:
    """Half of so many rows, scored by a model trained on the other half, and what they are.

    Scores are kept in the user's cache folder; where it cannot be written they are made anew.
    """
    about = f"stand-in: {rows:,} rows made here, {recipe.learner.value} trained on half of them"
    _, version = untrained(recipe, rows // 2)
    path = cache_folder() / f"{recipe.name}-{_digest(recipe, rows, version)}.npz"
    with suppress(OSError, ValueError, KeyError, BadZipFile, FedassayError):
        held = np.load(io.BytesIO(path.read_bytes()), allow_pickle=False)
        return Examples(held["labels"], held["scores"]), about
    say(f"training the {recipe.name} stand-in on {rows // 2:,} rows")
    features, labels = made_rows(recipe, rows)
    examples = scored_half(recipe, features, labels)
    content = io.BytesIO()
    np.savez_compressed(content, labels=examples.labels, scores=examples.scores)
    with suppress(OSError, FedassayError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content.getvalue())
    return examples, about


def cache_folder() -> Path:
    """Where scores are kept between runs: the user's own cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "fedassay" / "stand-ins"


def made_rows(recipe: Recipe, rows: int) -> tuple[FloatArray, FloatArray]:
    """Features and labels of the generator, the same for the same recipe and number."""
    generator = np.random.default_rng([_SEED, len(recipe.name), recipe.rows, rows])
    x = generator.standard_normal((rows, FEATURES))
    total = x[:, 0] + 0.8 * x[:, 1] - 0.6 * x[:, 2] + 0.4 * x[:, 3]
    if recipe.learner.is_boosting:
        total = total + np.sin(2.0 * x[:, 4]) + 0.8 * x[:, 5] * x[:, 6]
        total += 0.7 * np.abs(x[:, 7]) + 0.5 * np.maximum(x[:, 8], 0.0) * x[:, 9]
    log_odds = recipe.signal * (total - total.mean()) / total.std()
    labels = generator.random(rows) < 1.0 / (1.0 + np.exp(-log_odds))
    return x, labels.astype(np.float64)


def scored_half(recipe: Recipe, features: FloatArray, labels: FloatArray) -> Examples:
    """Train on every other row, score the rest."""
    training, testing = slice(0, None, 2), slice(1, None, 2)
    model, _ = untrained(recipe, len(labels[training]))
    model.fit(features[training], labels[training])
    scores = model.predict_proba(features[testing])[:, 1]
    return Examples(labels[testing], np.asarray(scores, dtype=np.float64))


def untrained(recipe: Recipe, rows: int) -> tuple[Any, str]:
    """The paper's classifier, to be trained on so many rows, and its version.

    One thread trains it, so that the same machine gives the same scores.
    """
    weight = recipe.positive_weight
    with needed_for("training the paper's classifiers"):
        match recipe.learner:
            case Learner.LIGHTGBM:
                import lightgbm

                boosted = lightgbm.LGBMClassifier(
                    **_BOOSTING, scale_pos_weight=weight, n_jobs=1, verbosity=-1
                )
                return boosted, lightgbm.__version__
            case Learner.XGBOOST:
                import xgboost

                trees = xgboost.XGBClassifier(**_BOOSTING, scale_pos_weight=weight, n_jobs=1)
                return trees, xgboost.__version__
            case Learner.LOGISTIC:
                import sklearn
                from sklearn.linear_model import LogisticRegression
                from sklearn.pipeline import make_pipeline
                from sklearn.preprocessing import StandardScaler

                strength = 1.0 / max(recipe.regularisation * rows, 1e-9)
                line = LogisticRegression(C=strength, class_weight={0: 1.0, 1: weight})
                return make_pipeline(StandardScaler(), line), sklearn.__version__


def _digest(recipe: Recipe, rows: int, version: str) -> str:
    """Another recipe, version of its learner or number of rows has other scores."""
    named = repr((astuple(recipe), rows, version, FEATURES, _SEED, _BOOSTING))
    return hashlib.sha256(named.encode()).hexdigest()[:16]
