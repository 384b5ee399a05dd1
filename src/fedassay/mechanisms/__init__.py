"""What happens to a client's counts before they leave it."""

from fedassay.mechanisms.base import LevelSetting, LocalMechanism, Mechanism, SharingMechanism
from fedassay.mechanisms.exact import Exact
from fedassay.mechanisms.grr import RandomizedResponse
from fedassay.mechanisms.law import Guarantee, Keep, Law, Neighbours, Privacy, Unit, UnitKind
from fedassay.mechanisms.polya import Polya, check_epsilon
from fedassay.mechanisms.unary import UnaryEncoding

AnyMechanism = Exact | Polya | UnaryEncoding | RandomizedResponse

MECHANISMS: dict[str, type[AnyMechanism]] = {
    mechanism.kind: mechanism for mechanism in (Exact, Polya, UnaryEncoding, RandomizedResponse)
}
"""By the name that files know each by; add a mechanism here."""

__all__ = [
    "MECHANISMS",
    "AnyMechanism",
    "Exact",
    "Guarantee",
    "Keep",
    "Law",
    "LevelSetting",
    "LocalMechanism",
    "Mechanism",
    "Neighbours",
    "Polya",
    "Privacy",
    "RandomizedResponse",
    "SharingMechanism",
    "UnaryEncoding",
    "Unit",
    "UnitKind",
    "check_epsilon",
]
