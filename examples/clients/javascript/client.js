// The client: checks a survey against its own limits, then answers it.
import { HALF_A_CHARACTER } from "./canonical.js";
import { Dice } from "./dice.js";
import { floorOf, isAbove } from "./fraction.js";
import { cellOfScore } from "./grid.js";
import { sha256 } from "./platform.js";
import { Refused, check } from "./refused.js";
import { examplesOfStep } from "./steps.js";
import { MOST_BLOCK_BYTES, REPORT_ID_BYTES, encodeRows, join } from "./wire.js";

export { Account } from "./account.js";
export { fraction } from "./fraction.js";
export { answerOnce, textStore } from "./outbox.js";
export { Refused } from "./refused.js";
export { answersStep } from "./steps.js";
export { readSurvey } from "./survey.js";

// Several times what the planner chooses: more tells more of a row, and measures nothing better.
const MOST_LEAVES = 8192;
// No client answers a survey that spends more, whatever its owner says: e^10 is 22,026 to 1.
const CEILING = { top: 10n, bottom: 1n };

/**
 * All that may leave this client: the bytes of a report file.
 *
 * @param survey what `readSurvey` gave
 * @param examples a list of { label: 0 or 1, score: from 0 to 1 }, with `second`, the score of
 *   the second model, where the survey asks for two, and `group` where it tells groups apart
 * @param limits { largestEpsilon: a fraction, smallestCohort: 1, modelDigests: [] };
 *   an empty list of digests accepts any model
 * @param options { clientId, charge, dice }: `charge(survey)` is where a client that keeps
 *   account of its epsilons does so, after all checks and before any noise, or throws
 */
export async function answer(survey, examples, limits, { clientId, charge, dice } = {}) {
  checkLimits(survey, limits);
  check(survey.isLocal, "this client answers local surveys; this one needs secure aggregation");
  check(survey.leaves <= MOST_LEAVES, `this client answers surveys of at most ${MOST_LEAVES} cells`);
  examples.forEach((example, i) => hitOf(survey, example, i));
  const hasId = typeof clientId === "string" && !HALF_A_CHARACTER.test(clientId);
  check(!survey.policy.byHash || hasId, "this survey draws a client's level from its id; found none");
  check(
    survey.step === null || hasId,
    "each row answers one of two surveys, by its client's id and its number; found no id",
  );
  const asked = await examplesOfStep(survey, examples, clientId);
  const hits = asked.map((example, i) => hitOf(survey, example, i));
  check(
    hits.length > 0 || survey.allowEmpty,
    "this survey is for clients that hold an example; this one has none",
  );
  const level = survey.policy.byHash ? await hashedLevel(survey, clientId) : null;
  await charge?.(survey);
  return join(messages(survey, hits, level, dice ?? new Dice()));
}

/** Throw `Refused` when a survey asks for more than this client gives. */
export function checkLimits(survey, { largestEpsilon, smallestCohort = 1, modelDigests = [] }) {
  check(
    survey.honestReports >= smallestCohort,
    `this client answers only in a crowd of at least ${smallestCohort}`,
  );
  // Without a limit there is no client to protect: it must be given.
  check(largestEpsilon, "say the largest epsilon that a survey may spend");
  check(!isAbove(largestEpsilon, CEILING), "a client's largest epsilon is at most 10");
  if (survey.epsilon === null || isAbove(survey.totalEpsilon, largestEpsilon)) {
    const { top, bottom } = largestEpsilon;
    throw new Refused(`this client spends at most epsilon ${top}/${bottom} on a survey`);
  }
  check(
    modelDigests.length === 0 || modelDigests.includes(survey.modelDigest),
    "this client assesses only models it knows",
  );
}

/** Where an example counts: label * leaves + leaf. Messages withhold its values. */
export function hitOf({ edges, second: secondEdges, groups, leaves }, { label, score, second, group }, i) {
  check(label === 0 || label === 1, `labels must be 0 or 1; item ${i + 1} is not`);
  check(isScore(score), `scores must lie in [0, 1]; item ${i + 1} does not`);
  let leaf = cellOfScore(edges, score);
  if (secondEdges !== null) {
    check(isScore(second), `second scores must lie in [0, 1]; item ${i + 1} does not`);
    leaf = leaf * (secondEdges.length - 1) + cellOfScore(secondEdges, second);
  }
  if (groups !== null) leaf += groups.partOf(group) * (edges.length - 1);
  return label * leaves + leaf;
}

function isScore(score) {
  return typeof score === "number" && score >= 0 && score <= 1;
}

/** The level that a public hash of the survey and the client's id points to. */
export async function hashedLevel({ fingerprint, policy }, clientId) {
  const digest = await sha256(join([fingerprint, new TextEncoder().encode(clientId)]));
  const mark = new DataView(digest.buffer).getBigUint64(0);
  // mark / 2^64 < c, without dividing.
  return policy.upTo.findIndex((c) => mark * c.bottom < c.top << 64n);
}

/** A level drawn by the survey's fractions, without looking at the data. */
function drawnLevel(survey, dice) {
  return survey.policy.everyLevel ? 0 : levelOfWord(survey, dice.word32());
}

/** The level that a uniform word of 32 bits stands for. */
export function levelOfWord({ policy }, word) {
  return policy.upTo.findIndex((c) => BigInt(word) < floorOf(c, 1n << 32n));
}

/** One report for each unit, in random order, gathered into one or more blocks per level. */
function messages(survey, hits, givenLevel, dice) {
  const { leaves } = survey;
  let sent = hits.length > 0 ? hits : [-1];
  // Where a client is the unit it sends one report, on one of its examples, whatever it holds.
  if (survey.unit === "client") sent = [sent[dice.below(sent.length)]];
  // The order of reports must not tell: neither that of the table nor that of the cells.
  dice.shuffle(sent);
  const levelOf = sent.map(() => givenLevel ?? drawnLevel(survey, dice));
  return survey.levels.flatMap(({ cells, cellOf, mechanism }, k) => {
    const rows = sent
      .filter((_, i) => levelOf[i] === k)
      .map((hit) => placeOf(hit, leaves, cells, cellOf))
      .map((place) => mechanism.row(place, dice));
    const perBlock = Math.floor(MOST_BLOCK_BYTES / mechanism.rowBytes);
    const blocks = [];
    for (let first = 0; first < rows.length; first += perBlock) {
      const block = rows.slice(first, first + perBlock);
      blocks.push(encodeRows(survey.fingerprint, dice.bytes(REPORT_ID_BYTES), k, block));
    }
    return blocks;
  });
}

/** The place of a hit on a level: label * cells + cell; -1 is a client with nothing. */
function placeOf(hit, leaves, cells, cellOf) {
  const label = Math.floor(hit / leaves);
  return hit < 0 ? -1 : label * cells + cellOf(hit % leaves, label);
}
