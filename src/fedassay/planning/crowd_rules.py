"""What a request for shuffled reports may and may not say."""

from collections.abc import Mapping
from fractions import Fraction

from fedassay.client import CEILING
from fedassay.errors import SettingInvalid
from fedassay.mechanisms import Privacy


def check_of_shuffled(privacy: Privacy, given: Mapping[str, object]) -> None:
    """Raise where something is given that has a meaning for shuffled reports only.

    >>> check_of_shuffled(Privacy.LOCAL, {"delta": None})
    """
    if privacy is Privacy.SHUFFLED:
        return
    for name, value in given.items():
        if value is not None:
            raise SettingInvalid(
                f"{name} goes with shuffled privacy; found it with {privacy.value} privacy. Drop "
                "it, or choose shuffled privacy."
            )


def check_crowd(
    minimum: int | None, crowd: int | None, *, colluders: int, largest_local: Fraction | None
) -> None:
    """Raise unless the reports that others hide in can come together.

    >>> check_crowd(900, 1000, colluders=10, largest_local=None)
    """
    if largest_local is not None and largest_local > CEILING:
        raise SettingInvalid(
            f"no client sends a report of more than epsilon {CEILING}, shuffled or not; found a "
            f"largest local epsilon of {float(largest_local):g}. Lower it."
        )
    needed = crowd if minimum is None else minimum
    if needed is not None and colluders >= needed:
        raise SettingInvalid(
            f"colluders must be fewer than the {needed:,} reports that others hide in; found "
            f"{colluders:,}. Raise minimum_reports, or trust more clients."
        )
    if crowd is not None and minimum is not None and minimum > crowd:
        raise SettingInvalid(
            f"minimum_reports must not exceed the {crowd:,} reports there are; found {minimum:,}, "
            "which nobody can reach. Lower it, or find more clients."
        )
