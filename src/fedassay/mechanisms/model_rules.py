"""What a survey must and must not say under site and shuffled privacy."""

from collections.abc import Sequence

from fedassay.errors import SettingInvalid
from fedassay.mechanisms.base import LocalMechanism, Mechanism
from fedassay.mechanisms.law import Privacy, Unit, UnitKind
from fedassay.mechanisms.shuffled_promise import ShuffledPromise


def check_site(
    privacy: Privacy,
    unit: Unit,
    reports: tuple[int, int],
    *,
    on_one_level: bool,
    alone: bool,
) -> None:
    """A site that adds the whole noise needs nobody; what speaks of others is refused.

    `reports` are a survey's minimum_reports and its colluders; `alone` is whether a report may
    be seen by itself: not sum_only.
    """
    minimum, colluders = reports
    if privacy is not Privacy.SITE:
        if not alone:
            raise SettingInvalid(
                "sum_only goes with site privacy, where a report might be seen; found it with "
                f"{privacy.value} privacy. Drop it."
            )
        return
    if on_one_level:
        raise SettingInvalid(
            "under site privacy every site reports on every level; found one level each. "
            "Use EveryLevel()."
        )
    if unit.kind is UnitKind.CLIENT:
        raise SettingInvalid(
            "site privacy protects what is inside a site, not whole sites; found unit client. "
            "Use unit example, or distributed privacy."
        )
    if colluders and alone:
        raise SettingInvalid(
            "site privacy holds whatever others do; found colluders. Drop them, or set sum_only."
        )
    if not alone and minimum < 2:
        raise SettingInvalid(
            "the sum of one report is that report: sum_only needs minimum_reports of at least "
            f"2; found {minimum}. Raise it, or drop sum_only."
        )


def check_shuffled(
    privacy: Privacy,
    promise: ShuffledPromise | None,
    mechanisms: Sequence[Mechanism],
    *,
    honest: int,
    once: bool,
) -> None:
    """Raise unless the promise of shuffled reports is there, and its mechanisms keep it.

    Guarantee: for each level by itself, among `honest` reports on that level. A report's level
    does not depend on its input, and levels are shuffled apart, so that whoever replaces an
    input changes one of them.
    """
    if privacy is not Privacy.SHUFFLED:
        if promise is not None:
            raise SettingInvalid(
                "the promise of shuffled reports goes with shuffled privacy; found it with "
                f"{privacy.value} privacy. Drop it."
            )
        return
    if promise is None:
        raise SettingInvalid(
            "shuffled reports promise an epsilon and a delta together; found no promise. Make the "
            "survey with fedassay.new_survey(privacy='shuffled', ...)."
        )
    if not once:
        raise SettingInvalid(
            "shuffled reports are asked for once: a shuffler makes one batch of a survey; found "
            "one of two surveys. Ask once (--steps 1)."
        )
    for level, mechanism in enumerate(mechanisms):
        if isinstance(mechanism, LocalMechanism) and not promise.is_kept(mechanism, honest):
            raise SettingInvalid(
                f"{honest:,} honest reports on level {level + 1} (minimum_reports less colluders) "
                f"must be ({float(promise.epsilon):g}, {float(promise.delta):g})-private once "
                f"shuffled; with a local epsilon of {float(mechanism.epsilon_spent):g} they "
                "are not. Raise minimum_reports, or lower the local epsilon."
            )
