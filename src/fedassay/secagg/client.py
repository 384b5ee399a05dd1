"""The client's side of a round: four answers, each given once, each after its checks.

A method raises a typed error and changes nothing, or answers and moves on. The last request is
answered again with the same bytes when it comes again, and refused when it comes changed.
"""

import hashlib
from dataclasses import replace

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from fedassay.client import ClientPolicy
from fedassay.errors import (
    CohortTooSmall,
    FileInvalid,
    RoundMismatch,
    SealBroken,
    SettingInvalid,
    StageRefused,
    StateStale,
    TermsRefused,
    UnmaskRefused,
)
from fedassay.examples import IntArray
from fedassay.randomness import Randomness
from fedassay.secagg import messages
from fedassay.secagg.cohort import Cohort, agreed, announced, check_roster
from fedassay.secagg.graph import BoolArray
from fedassay.secagg.identity import Named, Pinned, check_signature
from fedassay.secagg.keys import (
    Leaf,
    Secrets,
    agree,
    mask_private,
    pair_mask,
    seal,
    self_mask,
    unseal,
)
from fedassay.secagg.masks import Masker, WordArray
from fedassay.secagg.shamir import ELEMENT_BYTES, PRIME, split
from fedassay.secagg.state import ClientState, Seat, Stage
from fedassay.secagg.terms import Terms, as_words
from fedassay.survey import Survey


class SecAggClient:
    """One client in one round.

    Guarantee: whoever plays server learns of this client's vector at most its sum with those
    of all other survivors, at least `terms.minimum` with at most `terms.colluders` corrupt ones
    among them, modulo 2^32. Against a server that lies this needs pinned identities; without
    them the server must be trusted to pass keys and the survivor set on as they are
    (docs/threat-model.md).
    """

    def __init__(
        self, state: ClientState, member: Named | Pinned, *, randomness: Randomness
    ) -> None:
        if not randomness.is_secret:
            raise SettingInvalid(
                "keys must come from SystemRandomness; found a repeatable source, which protects "
                "nobody."
            )
        if state.own.member != member.member:
            raise StateStale(
                "a round is finished by the identity that began it; found another. "
                "Use the identity file that the round was started with."
            )
        _check_membership(state.terms, member)
        self._state = state
        self._member = member
        self._randomness = randomness
        self._agreements: dict[bytes, bytes] = {}
        self._cohort = (
            None
            if state.seat is None
            else Cohort.of(state.terms, state.seat.clients, state.seat.root, state.seat.present)
        )
        if self._cohort is not None and state.seat is not None:
            degree = self._cohort.graph.degree
            if len(state.seat.peers) != degree or len(state.held) not in (0, degree):
                raise FileInvalid(
                    "a round's state must hold as many neighbours as the cohort gives it; it does "
                    "not. This client leaves the round."
                )

    @classmethod
    def start(
        cls,
        terms: Terms,
        survey: Survey,
        member: Named | Pinned,
        *,
        policy: ClientPolicy,
        randomness: Randomness,
    ) -> "SecAggClient":
        """Accept a round's terms, or refuse them; draws fresh keys."""
        if survey.is_local:
            raise TermsRefused(
                "reports to this survey protect themselves; secure aggregation adds nothing. "
                "Send them as they are."
            )
        terms.check(survey, policy)
        _check_membership(terms, member)
        secrets = Secrets.draw(randomness)
        own = secrets.leaf(member.member, terms.digest)
        return cls(ClientState(terms, own, Stage.KEYS, secrets), member, randomness=randomness)

    @property
    def terms(self) -> Terms:
        """The round's terms."""
        return self._state.terms

    @property
    def stage(self) -> Stage:
        """The last thing that was answered."""
        return self._state.stage

    def keys(self) -> bytes:
        """Stage 1: announce fresh public keys."""
        signature = b""
        if isinstance(self._member, Pinned):
            signature = self._member.identity.sign(announced(self.terms, self._state.own))
        return messages.encode_keys(self.terms, messages.Signed(self._state.own, signature))

    def shares(self, roster_message: bytes) -> bytes:
        """Stage 2: check the cohort, and entrust shares of two secrets to the neighbours."""
        if (reply := self._repeated(Stage.SHARES, roster_message)) is not None:
            return reply
        members = len(self._member.roster.keys) if isinstance(self._member, Pinned) else 0
        roster = messages.decode_roster(roster_message, self.terms, members)
        own, secrets = self._state.own, self._secrets
        cohort, peers = check_roster(self.terms, own, roster, self._member)
        holders = cohort.graph.degree, cohort.graph.threshold
        pairs = zip(
            split(secrets.mask_seed, *holders, randomness=self._randomness),
            split(secrets.self_seed, *holders, randomness=self._randomness),
            strict=True,
        )
        sealed = [
            seal(self._agreed_with(peer), cohort.digest, own, peer, shares=_joined(*pair))
            for peer, pair in zip(peers, pairs, strict=True)
        ]
        seat = Seat(roster.clients, roster.rank, roster.root, roster.present, peers)
        self._cohort = cohort
        return self._answered(
            Stage.SHARES,
            roster_message,
            messages.encode_shares(self.terms, sealed),
            replace(self._state, seat=seat),
        )

    def masked(self, inbox: bytes, vector: IntArray) -> bytes:
        """Stage 3: open the neighbours' shares, and give the masked vector."""
        if (reply := self._repeated(Stage.MASKED, inbox)) is not None:
            return reply
        cohort, seat = self._seated
        boxes = messages.decode_inbox(inbox, self.terms, cohort.graph.degree)
        heard = sum(box is not None for box in boxes)
        if heard < cohort.graph.threshold:
            raise CohortTooSmall(
                f"at least {cohort.graph.threshold} neighbours must hold this client's shares; "
                f"found {heard}. Start a new round."
            )
        if len(vector) != self.terms.length:
            raise SettingInvalid(f"this round sums {self.terms.length} words; found {len(vector)}.")
        total = as_words(vector, cohort.clients)
        held = self._opened(cohort, seat, boxes)
        self._add_masks(total, cohort, seat, held)
        return self._answered(
            Stage.MASKED,
            inbox,
            messages.encode_masked(self.terms, total),
            replace(self._state, held=held),
        )

    def confirm(self, survivors_message: bytes) -> bytes:
        """Sign the one survivor set that this client will go by; pinned identities only."""
        if (reply := self._repeated(Stage.CONFIRMED, survivors_message)) is not None:
            return reply
        if not isinstance(self._member, Pinned):
            raise StageRefused("survivors are confirmed where identities are pinned; none are.")
        cohort, seat = self._seated
        survivors = messages.decode_survivors(survivors_message, self.terms, cohort.clients)
        self._check_survivors(cohort, seat, survivors)
        packed = messages.pack_bits(survivors)
        signature = self._member.identity.sign(agreed(cohort, packed))
        return self._answered(
            Stage.CONFIRMED,
            survivors_message,
            messages.encode_confirm(self.terms, signature),
            replace(self._state, survivors=packed),
        )

    def unmask(self, request: bytes) -> bytes:
        """Stage 4: of every neighbour, one share: of its self-mask or of its pair masks."""
        if (reply := self._repeated(Stage.UNMASKED, request)) is not None:
            return reply
        cohort, seat = self._seated
        survivors, signatures = messages.decode_unmask(request, self.terms, cohort.clients)
        self._check_survivors(cohort, seat, survivors)
        packed = messages.pack_bits(survivors)
        if self._state.survivors not in (None, packed):
            raise UnmaskRefused(
                "this client confirmed one survivor set; the request names another. "
                "The server must unmask what was confirmed."
            )
        self._check_agreement(cohort, survivors, signatures)
        shares = []
        for rank, held in zip(cohort.neighbours(seat.rank), self._state.held, strict=True):
            if held is not None:
                mask_share, self_share = _parted(held)
                shares.append(self_share if survivors[rank] else mask_share)
        # Nothing is left to give a second answer with.
        spent = replace(self._state, survivors=packed, secrets=None, held=())
        self._agreements = {}
        reply = messages.encode_reveal(self.terms, shares)
        return self._answered(Stage.UNMASKED, request, reply, spent)

    def to_bytes(self) -> bytes:
        """The state between stages; it holds secrets (`RoundStore` keeps it safe)."""
        return self._state.to_bytes()

    @classmethod
    def from_bytes(
        cls, data: bytes, member: Named | Pinned, *, randomness: Randomness
    ) -> "SecAggClient":
        """Go on from a stored state."""
        return cls(ClientState.from_bytes(data), member, randomness=randomness)

    def _agreed_with(self, peer: Leaf) -> bytes:
        """The secret that seals between a peer and this client, in both directions."""
        if peer.seal_key not in self._agreements:
            private = X25519PrivateKey.from_private_bytes(self._secrets.seal_private)
            self._agreements[peer.seal_key] = agree(private, peer.seal_key)
        return self._agreements[peer.seal_key]

    def _opened(
        self, cohort: Cohort, seat: Seat, boxes: list[bytes | None]
    ) -> tuple[bytes | None, ...]:
        opened: list[bytes | None] = []
        for peer, box in zip(seat.peers, boxes, strict=True):
            if box is None:
                opened.append(None)
                continue
            agreed_with = self._agreed_with(peer)
            shares = unseal(agreed_with, cohort.digest, peer, self._state.own, sealed=box)
            if max(_parted(shares)) >= PRIME:
                raise SealBroken(
                    f"shares from {peer.member.hex()[:12]} lie outside the field: that client is "
                    "broken or hostile. Start a new round without it."
                )
            opened.append(shares)
        return tuple(opened)

    def _add_masks(
        self, total: WordArray, cohort: Cohort, seat: Seat, held: tuple[bytes | None, ...]
    ) -> None:
        secrets, own, masker = self._secrets, self._state.own, Masker(self.terms.length)
        masker.add(total, self_mask(secrets.self_seed, cohort.digest, own.member))
        private = mask_private(secrets.mask_seed, self.terms.digest)
        ranks = cohort.neighbours(seat.rank)
        for rank, peer, shares in zip(ranks, seat.peers, held, strict=True):
            if shares is None:
                continue
            key = pair_mask(private, cohort.digest, own, peer)
            if seat.rank < rank:
                masker.add(total, key)
            else:
                masker.subtract(total, key)

    def _check_survivors(self, cohort: Cohort, seat: Seat, survivors: BoolArray) -> None:
        if not survivors[seat.rank]:
            raise UnmaskRefused(
                "this client gave its masked vector; the server lists it as dropped, which would "
                "lay its masks open. Refused."
            )
        needed = max(self.terms.minimum, cohort.graph.survivors)
        if survivors.sum() < needed:
            raise UnmaskRefused(
                f"a sum over fewer than {needed} clients stays masked; the server lists "
                f"{int(survivors.sum())} survivors. Start a new round with more clients."
            )
        for rank, held in zip(cohort.neighbours(seat.rank), self._state.held, strict=True):
            if survivors[rank] and held is None:
                raise UnmaskRefused(
                    "a neighbour is listed as a survivor whose shares never reached this client, "
                    "so that they do not mask each other. The server withheld them. Refused."
                )

    def _check_agreement(
        self, cohort: Cohort, survivors: BoolArray, signatures: list[bytes | None]
    ) -> None:
        vouching = survivors
        if isinstance(self._member, Pinned):
            content = agreed(cohort, messages.pack_bits(survivors))
            for member, signature in zip(cohort.members(self._member), signatures, strict=True):
                if signature is not None:
                    check_signature(member, signature, content)
            vouching = survivors & [signature is not None for signature in signatures]
            if vouching.sum() < cohort.graph.quorum:
                raise UnmaskRefused(
                    f"{cohort.graph.quorum} survivors must confirm the survivor set, so that no "
                    f"two sets can be; found {int(vouching.sum())}. Refused."
                )
        if not cohort.graph.holds_together(cohort.ring, vouching):
            raise UnmaskRefused(
                "so many neighbours in a row are missing that parts of the cohort might be "
                "summed apart. Start a new round."
            )

    @property
    def _secrets(self) -> Secrets:
        if self._state.secrets is None:
            raise StageRefused("this round is over for this client. Start a new round.")
        return self._state.secrets

    @property
    def _seated(self) -> tuple[Cohort, Seat]:
        if self._cohort is None or self._state.seat is None:
            raise StageRefused("this client has not seen the cohort yet. Send the roster first.")
        return self._cohort, self._state.seat

    def _repeated(self, stage: Stage, request: bytes) -> bytes | None:
        """The answer already given to this request, or None when it is time to give one."""
        if self.stage is stage:
            if _digest(request) == self._state.request:
                return self._state.reply
            raise StageRefused(
                f"the {stage.name.lower()} stage is answered once; a second, different request "
                "came. Start a new round."
            )
        before = (Stage.MASKED, Stage.CONFIRMED) if stage is Stage.UNMASKED else (stage - 1,)
        if self.stage not in before:
            raise StageRefused(
                f"the {stage.name.lower()} stage is not due: this client last answered "
                f"{self.stage.name.lower()}. Requests come in order, once each."
            )
        return None

    def _answered(self, stage: Stage, request: bytes, reply: bytes, state: ClientState) -> bytes:
        self._state = replace(state, stage=stage, request=_digest(request), reply=reply)
        return reply


def _check_membership(terms: Terms, member: Named | Pinned) -> None:
    if isinstance(member, Named):
        if terms.roster is not None:
            raise TermsRefused(
                "this round is for pinned identities; this client has none. Give it its identity "
                "and the roster."
            )
        return
    member.roster.index(member.member)
    if terms.roster is None:
        raise TermsRefused(
            "this client takes part only among pinned identities; the round pins none. "
            "Start it with the roster."
        )
    if terms.roster != member.roster.digest:
        raise RoundMismatch(
            f"this client's roster is {member.roster.digest.hex()[:12]}; the round's is "
            f"{terms.roster.hex()[:12]}. Give all sites the same roster file."
        )
    if terms.minimum > len(member.roster.keys):
        raise TermsRefused(
            f"this client's roster has {len(member.roster.keys)} identities; the round needs "
            f"{terms.minimum}. Lower minimum_reports, or pin more."
        )


def _joined(mask_share: int, self_share: int) -> bytes:
    return mask_share.to_bytes(ELEMENT_BYTES, "little") + self_share.to_bytes(
        ELEMENT_BYTES, "little"
    )


def _parted(shares: bytes) -> tuple[int, int]:
    first, second = shares[:ELEMENT_BYTES], shares[ELEMENT_BYTES:]
    return int.from_bytes(first, "little"), int.from_bytes(second, "little")


def _digest(request: bytes) -> bytes:
    return hashlib.sha256(request).digest()
