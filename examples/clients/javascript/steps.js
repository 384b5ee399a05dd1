// A survey's place among two that belong together, and whose turn it is to answer which.
import { exactly } from "./fields.js";
import { fraction, isAbove } from "./fraction.js";
import { sha256 } from "./platform.js";
import { Refused, check } from "./refused.js";
import { join } from "./wire.js";

const WHOLE = { top: 1n, bottom: 1n };
// What a participant learns of both stays bounded.
const MOST_SHARED_LEVELS = 4;

/** Read the place of a survey: { isFirst, totalEpsilon, share, first }; null where it stands alone. */
export function stepOf(content, { isLocal, epsilon, hierarchy, levels, inGroups }) {
  const step = content === undefined ? null : readStep(content);
  if (step !== null) {
    checkSpent(step, epsilon, isLocal);
    check(
      isLocal || levels <= MOST_SHARED_LEVELS,
      `each of two surveys has at most ${MOST_SHARED_LEVELS} levels where noise is shared`,
    );
  }
  check(
    (hierarchy.kind === "cuts") === (step !== null && !step.isFirst) || inGroups,
    "levels are chosen for the second of two surveys, and only for that",
  );
  check(
    !isLocal || hierarchy.weights === undefined,
    "weighted sums need noise that clients share. Drop the weights",
  );
  return step;
}

function readStep(content) {
  const isFirst = content?.kind === "first";
  if (!isFirst && content?.kind !== "second") {
    exactly(content, Object.keys(content ?? {}), "step");
    throw new Refused("a survey is the first or the second of two");
  }
  const shared = ["kind", "total_epsilon", "client_fraction"];
  exactly(content, isFirst ? shared : [...shared, "first"], "step");
  const totalEpsilon = fraction(content.total_epsilon, "total_epsilon");
  const share = fraction(content.client_fraction, "client_fraction");
  check(totalEpsilon.top > 0n, "the epsilon of both surveys must be positive");
  check(
    share.top > 0n && !isAbove(share, WHOLE),
    "a step's share of the clients must be above 0 and at most 1",
  );
  check(share.bottom < 10n ** 6n, "a step's share of the clients must be a simple fraction");
  return { isFirst, totalEpsilon, share, first: isFirst ? null : fingerprint(content.first) };
}

function fingerprint(text) {
  check(
    typeof text === "string" && /^[0-9a-f]{64}$/.test(text),
    "a survey's fingerprint has 64 lower-case hexadecimal digits",
  );
  return Uint8Array.from(text.match(/../g), (two) => parseInt(two, 16));
}

/** What this survey spends must fit what both announce. */
function checkSpent({ totalEpsilon, share }, epsilon, isLocal) {
  check(epsilon !== null, "exact sums need no second survey");
  const isPart = isAbove(totalEpsilon, epsilon);
  const isAll = !isPart && !isAbove(epsilon, totalEpsilon);
  const hearsAll = share.top === share.bottom;
  check(
    !isLocal || (isAll && !hearsAll),
    "under local privacy a client answers one of the two, with the whole epsilon",
  );
  check(
    isLocal || (isPart && hearsAll),
    "all clients answer both surveys, and each spends a part of the total",
  );
}

/**
 * Whether whoever has this name answers this one of two locally private surveys: a public
 * hash of the first survey and the name, without looking at any data.
 */
export async function answersStep({ isLocal, fingerprint, step }, name) {
  if (step === null || !isLocal) return true;
  const texts = new TextEncoder().encode(`step${name}`);
  const digest = await sha256(join([step.isFirst ? fingerprint : step.first, texts]));
  const mark = new DataView(digest.buffer).getBigUint64(0);
  const { top, bottom } = step.share;
  // mark / 2^64 < the first one's share, without dividing; that is 1 less the second one's.
  const below = mark * bottom < (step.isFirst ? top : bottom - top) << 64n;
  return step.isFirst ? below : !below;
}

/** The examples whose turn it is; a row's name is the client's id, a colon and its number. */
export async function examplesOfStep(survey, examples, clientId) {
  if (survey.step === null || !survey.isLocal) return examples;
  const isOwn = await answersStep(survey, clientId);
  const turns =
    survey.unit === "client"
      ? examples.map(() => isOwn)
      : await Promise.all(examples.map((_, row) => answersStep(survey, `${clientId}:${row}`)));
  const asked = examples.filter((_, row) => turns[row]);
  check(
    examples.length > 0 ? asked.length > 0 : isOwn,
    "of two surveys a client, or each of its rows, answers one; nothing of this client is asked " +
      "by this one. Answer the other",
  );
  return asked;
}
