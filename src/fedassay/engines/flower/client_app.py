"""The ClientApp: Flower's messages in, a site's answers out; no exception reaches Flower.

Flower writes what a ClientApp raises, with all its causes, to its log and into the reply. A
cause may quote a cell of the table, so that every error ends here, in one line of our own.
"""

from collections.abc import Callable
from dataclasses import replace

from fedassay.engines.departure import Departure, slot_seconds
from fedassay.engines.flower.from_flower import ClientApp, Context, Message
from fedassay.engines.flower.participant import Participant, read_survey
from fedassay.engines.flower.progress import say, step_words
from fedassay.engines.flower.records import (
    Answered,
    Declined,
    Question,
    Reply,
    read_question,
    reply_content,
)
from fedassay.engines.flower.site import Site, node_config
from fedassay.errors import (
    FedassayError,
    SecAggError,
    StateStale,
    TermsRefused,
)

app = ClientApp()
DECLINED = "SiteDeclined"
"""The one kind of refusal, whatever the reason."""
_SEE_LOG = "the site's log says what to do"


def respond(
    message: Message, context: Context, stage: Callable[[Participant, Question], bytes]
) -> Message:
    """Answer one message, or decline it; the reason is in the site's log."""
    name = message.metadata.message_type.rpartition(".")[2]
    reply: Reply
    called = ""
    slot, step = slot_seconds(None), ""
    departure = Departure.begin()
    try:
        question = read_question(message)
        slot, step = _slot(question)
        site = Site.from_config(node_config(context.node_config, context.run_config))
        called = site.agreement.data_id
        called = site.name
        participant = Participant(site, str(context.node_id), f"run {context.run_id}")
        reply = Answered(stage(participant, question))
        say(f"fedassay: answered stage {name}{step} with {len(reply.payload):,} bytes.")
    except FedassayError as error:
        say(f"fedassay: declined stage {name}{step}. {type(error).__name__}: {error}")
        reply = _declined(error)
    except Exception as error:  # its text may quote the table
        place = _innermost(error)
        say(
            f"fedassay: declined stage {name}{step}. Unexpected {type(error).__name__} in {place} "
            "(text withheld). Please report it."
        )
        reply = Declined(DECLINED, _SEE_LOG)
    # Refusals too: how soon one came would tell how far the question got.
    departure.wait(slot)
    return Message(reply_content(replace(reply, site=called)), reply_to=message)


@app.query("keys")
def keys(message: Message, context: Context) -> Message:
    """Secure aggregation, stage 1."""
    return respond(message, context, Participant.keys)


@app.query("shares")
def shares(message: Message, context: Context) -> Message:
    """Secure aggregation, stage 2."""
    return respond(message, context, Participant.shares)


@app.query("masked")
def masked(message: Message, context: Context) -> Message:
    """Secure aggregation, stage 3."""
    return respond(message, context, Participant.masked)


@app.query("confirm")
def confirm(message: Message, context: Context) -> Message:
    """Secure aggregation, where identities are pinned."""
    return respond(message, context, Participant.confirm)


@app.query("unmask")
def unmask(message: Message, context: Context) -> Message:
    """Secure aggregation, stage 4."""
    return respond(message, context, Participant.unmask)


@app.query("report")
def report(message: Message, context: Context) -> Message:
    """The site's own reports: local or site privacy, or a trusted server."""
    return respond(message, context, Participant.report)


def _declined(error: FedassayError) -> Declined:
    """What a server learns: what is wrong with its messages, but nothing about the site.

    Policy, budget, repeats, table and folders are one and the same: which of them it was would
    tell what the site holds or has spent.
    """
    if isinstance(error, SecAggError) and not isinstance(error, TermsRefused | StateStale):
        return Declined(type(error).__name__, str(error))
    return Declined(DECLINED, _SEE_LOG)


def _slot(question: Question) -> tuple[float, str]:
    """How long any reply to a question is held, and which of two surveys it is about.

    The survey alone decides.
    """
    try:
        survey = read_survey(question.survey) if question.survey else None
    except FedassayError:
        survey = None
    return slot_seconds(survey), "" if survey is None else step_words(survey)


def _innermost(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "an unknown place"
    return f"{trace.tb_frame.f_code.co_name}, line {trace.tb_lineno}"
