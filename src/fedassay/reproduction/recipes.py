"""The paper's three tables and classifiers (`tab:exp_setup`), and how each is stood in for."""

from dataclasses import dataclass
from enum import Enum


class Learner(Enum):
    """What is trained."""

    LIGHTGBM = "LightGBM"
    XGBOOST = "XGBoost"
    LOGISTIC = "logistic regression"

    @property
    def is_boosting(self) -> bool:
        """Whether it learns waves, products and hinges, and not sums alone."""
        return self is not Learner.LOGISTIC


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One of the paper's tables: what it was, and what makes rows and a model like it.

    Rows have independent standard normal features. The log-odds of a positive are `signal` times
    a standardised sum: of four features, and, for boosting, of waves, products and hinges of six
    more. A positive counts `positive_weight` times in training, which shifts scores up;
    the inverse of logistic regression's C is `regularisation` times the training rows, which
    draws scores together.
    """

    name: str
    rows: int
    roc_auc: float
    """As the paper reports it."""
    ece: float | None
    """Of its uncalibrated scores, as the paper reports it; None where only called small."""
    learner: Learner
    """The paper's own, really trained."""
    signal: float
    positive_weight: float = 1.0
    regularisation: float = 0.0
    folder: str
    """The competition's folder."""
    features: tuple[str, int, int]
    """Prefix, first and last number of the original's feature columns."""
    label: str

    @property
    def feature_names(self) -> list[str]:
        """The original's feature columns.

        >>> RECIPES[0].feature_names[:2]
        ['f1', 'f2']
        """
        prefix, first, last = self.features
        return [f"{prefix}{number}" for number in range(first, last + 1)]


RECIPES = (
    Recipe(
        name="september",
        rows=957_919,
        roc_auc=0.79,
        ece=0.1,
        learner=Learner.LIGHTGBM,
        signal=1.45,
        positive_weight=1.8,
        folder="tabular-playground-series-sep-2021",
        features=("f", 1, 118),
        label="claim",
    ),
    Recipe(
        name="october",
        rows=1_000_000,
        roc_auc=0.85,
        ece=None,
        learner=Learner.XGBOOST,
        signal=2.1,
        folder="tabular-playground-series-oct-2021",
        features=("f", 0, 284),
        label="target",
    ),
    Recipe(
        name="november",
        rows=600_000,
        roc_auc=0.73,
        ece=0.08,
        learner=Learner.LOGISTIC,
        signal=0.96,
        regularisation=0.22,
        folder="tabular-playground-series-nov-2021",
        features=("f", 0, 99),
        label="target",
    ),
)
"""In the paper's order."""
