"""What happens to a client's counts before they leave it."""

from fedassay.mechanisms.base import LocalMechanism, Mechanism, SharingMechanism
from fedassay.mechanisms.exact import Exact
from fedassay.mechanisms.grr import RandomizedResponse
from fedassay.mechanisms.law import Guarantee, Law, Neighbours, Privacy, Unit, UnitKind
from fedassay.mechanisms.polya import Polya, check_epsilon
from fedassay.mechanisms.unary import UnaryEncoding

__all__ = [
    "Exact",
    "Guarantee",
    "Law",
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
