"""Questions and replies as Flower messages; whatever arrives is read as if a stranger sent it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fedassay.engines.flower.from_flower import ConfigRecord, Message, RecordDict
from fedassay.errors import FedassayError, MessageMalformed, MessageTooLarge

RECORD = "fedassay"
PROTOCOL = 2
MOST_BYTES = 2**28
"""The largest payload either side reads."""
MOST_TEXT = 1000
MOST_NAME = 60
_SAME_VERSION = "Use the same fedassay version on both sides."


@dataclass(frozen=True, slots=True)
class Question:
    """What the server asks a site at one stage."""

    survey: bytes
    """The survey's JSON, at the stages that need it."""
    round_id: bytes
    """Of secure aggregation; empty without it."""
    payload: bytes
    """What the stage brings: terms, keys, sealed shares, a survivor set."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A site's payload."""

    payload: bytes
    site: str = field(default="", compare=False)
    """What the site calls itself."""


@dataclass(frozen=True, slots=True)
class Declined:
    """A site's refusal: its kind, and what the server may know of the reason."""

    kind: str
    reason: str
    site: str = field(default="", compare=False)
    """What the site calls itself."""


Reply = Answered | Declined


def question_content(question: Question) -> RecordDict:
    """The content of a message to a site."""
    return _content(
        {"survey": question.survey, "round": question.round_id, "payload": question.payload}
    )


def read_question(message: Message) -> Question:
    """Read what a server sent."""
    fields = _fields(message, "survey", "round", "payload")
    return Question(*(_bytes(fields, name) for name in ("survey", "round", "payload")))


def reply_content(reply: Reply) -> RecordDict:
    """The content of a message to the server."""
    if isinstance(reply, Answered):
        return _content({"payload": reply.payload, "site": reply.site})
    return _content(
        {"declined": reply.kind, "reason": reply.reason[:MOST_TEXT], "site": reply.site}
    )


def read_reply(message: Message) -> Reply:
    """Read what a site sent; Flower's own errors count as refusals."""
    if message.has_error():
        return Declined(f"Flower error {message.error.code}", "the site's log says more")
    try:
        fields = _fields(message, "payload", "declined", "reason", "site")
        site = _text(fields, "site")[:MOST_NAME]
        if "declined" in fields:
            return Declined(_text(fields, "declined"), _text(fields, "reason"), site)
        return Answered(_bytes(fields, "payload"), site)
    except FedassayError as error:
        return Declined(type(error).__name__, str(error))


def _content(fields: Mapping[str, bytes | str]) -> RecordDict:
    return RecordDict({RECORD: ConfigRecord({"protocol": PROTOCOL, **fields})})


def _fields(message: Message, *known: str) -> ConfigRecord:
    content = message.content if message.has_content() else RecordDict()
    if set(content) != {RECORD} or not isinstance(content[RECORD], ConfigRecord):
        raise MessageMalformed(
            f"a message holds one record, {RECORD!r}; this one does not. {_SAME_VERSION}"
        )
    fields = content.config_records[RECORD]
    if fields.get("protocol") != PROTOCOL or type(fields["protocol"]) is not int:
        raise MessageMalformed(
            f"this fedassay speaks protocol {PROTOCOL}; the message is of another. {_SAME_VERSION}"
        )
    if set(fields) - {"protocol", *known}:
        raise MessageMalformed(f"a message has a field that is not known here. {_SAME_VERSION}")
    return fields


def _bytes(fields: ConfigRecord, name: str) -> bytes:
    value = fields.get(name)
    if not isinstance(value, bytes):
        raise MessageMalformed(f"a message must have bytes as {name!r}; it has not.")
    if len(value) > MOST_BYTES:
        raise MessageTooLarge(
            f"{name!r} has at most {MOST_BYTES} bytes; found {len(value)}. Split the table, or "
            "start a survey with fewer cells."
        )
    return value


def _text(fields: ConfigRecord, name: str) -> str:
    """A short text without anything that could forge another line of a log."""
    value = fields.get(name)
    if not isinstance(value, str):
        raise MessageMalformed(f"a message must have a text as {name!r}; it has not.")
    return "".join(c if c.isprintable() else " " for c in value[:MOST_TEXT])
