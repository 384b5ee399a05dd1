// A survey, read from bytes that a stranger may have written.
import { parseCanonical, canonical } from "./canonical.js";
import { boolean, exactly, wholeNumber } from "./fields.js";
import { add, cumulated, fraction, isAbove } from "./fraction.js";
import { gridOf } from "./grid.js";
import { groupsOf } from "./groups.js";
import { levelsOf } from "./levels.js";
import { mechanismOf } from "./mechanisms.js";
import { checkEpsilon } from "./probabilities.js";
import { Refused, check } from "./refused.js";
import { sha256 } from "./platform.js";
import { stepOf } from "./steps.js";

const FORMAT = "fedassay.survey/2";
const MERGING = "fedassay.survey/3";
const ELSEWHERE = "answered with the fedassay package, not here";
const FIELDS = [
  "format", "privacy", "grid", "hierarchy", "level_policy", "mechanisms", "unit",
  "minimum_reports", "colluders", "allow_empty", "model_digest",
];
const MECHANISMS = {
  secure: ["exact"],
  distributed: ["polya"],
  local: ["oue", "grr"],
  shuffled: ["oue", "grr"],
};
const MOST_CLIENTS = 2 ** 31;
const MOST_EXAMPLES = 2 ** 20;

/** Read and check a survey file's bytes; resolves to what a client needs to answer it. */
export async function readSurvey(bytes) {
  const content = parseCanonical(bytes);
  check(content?.format !== MERGING, `exact sums with a smallest cell are ${ELSEWHERE}`);
  check(content?.format === FORMAT, `expected format "${FORMAT}"`);
  check(content.privacy !== "site", `site privacy is ${ELSEWHERE}`);
  check(!Object.hasOwn(content, "moments"), `moments of sites are ${ELSEWHERE}`);
  const optional = ["step", "groups", "shuffled"].filter((name) => Object.hasOwn(content, name));
  exactly(content, [...FIELDS, ...optional], "survey");
  const fitting = Object.keys(MECHANISMS).find((privacy) => privacy === content.privacy);
  check(fitting, '"privacy" is one of secure, distributed, shuffled, local');
  const isLocal = ["local", "shuffled"].includes(fitting);
  checkPromise(content);
  const grid = gridOf(content.grid);
  const groups = groupsOf(content.groups);
  const leaves = grid.cells * (groups?.parts ?? 1);
  const levels = levelsOf(content.hierarchy, leaves);
  const minimumReports = wholeNumber(content.minimum_reports, 1, MOST_CLIENTS, "minimum_reports");
  const colluders = wholeNumber(content.colluders, 0, minimumReports - 1, "colluders");
  const allowEmpty = boolean(content.allow_empty, "allow_empty");
  checkUnit(content.unit);
  checkModel(content.model_digest);
  check(
    Array.isArray(content.mechanisms) && content.mechanisms.length === levels.length,
    '"mechanisms" must list one mechanism per level',
  );
  const mechanisms = content.mechanisms.map((each, k) =>
    mechanismOf(each, levels[k].cells, allowEmpty),
  );
  check(
    mechanisms.every(({ kind }) => MECHANISMS[fitting].includes(kind)),
    `${fitting} privacy goes with ${MECHANISMS[fitting].join(" or ")} mechanisms`,
  );
  const policy = levelPolicy(content.level_policy, levels.length);
  checkLevels(content, policy, levels.length, isLocal);
  checkPair(content, policy, levels.length);
  check(
    content.privacy !== "distributed" || minimumReports >= 2,
    "distributed noise needs minimum_reports of at least 2",
  );
  const epsilon = epsilonOf(mechanisms, policy);
  const { hierarchy } = content;
  const inGroups = groups !== null;
  const step = stepOf(content.step, { isLocal, epsilon, hierarchy, levels: levels.length, inGroups });
  return {
    content,
    fingerprint: await sha256(new TextEncoder().encode(canonical(content))),
    isLocal,
    edges: grid.edges,
    second: grid.second,
    groups,
    leaves,
    levels: levels.map((level, k) => ({ ...level, mechanism: mechanisms[k] })),
    policy,
    unit: content.unit.kind,
    honestReports: minimumReports - colluders,
    allowEmpty,
    modelDigest: content.model_digest,
    epsilon,
    step,
    // On this survey, and on the other one where it is one of two.
    totalEpsilon: step === null ? epsilon : step.totalEpsilon,
  };
}

function levelPolicy(content, levels) {
  if (content?.kind === "every") {
    exactly(content, ["kind"], "level_policy");
    return { everyLevel: true, byHash: false };
  }
  check(content?.kind === "one", "a client reports on every level or on one");
  exactly(content, ["kind", "client_fractions", "by_hash"], "level_policy");
  const listed = content.client_fractions;
  check(
    Array.isArray(listed) && listed.length === levels,
    `there must be one share of clients for each of ${levels} levels`,
  );
  const fractions = listed.map((each) => fraction(each, "client_fractions"));
  const upTo = cumulated(fractions);
  const sum = upTo[levels - 1];
  check(
    fractions.every((each) => each.top > 0n) && sum.top === sum.bottom,
    "the levels' shares of clients must be positive and add up to 1",
  );
  return { everyLevel: false, upTo, byHash: boolean(content.by_hash, "by_hash") };
}

/**
 * What shuffled reports promise together. Only who can compute that relies on it: this client
 * holds what a report spends by itself to its owner's limit, so that it need not trust a shuffler.
 */
function checkPromise({ privacy, shuffled, step }) {
  if (privacy !== "shuffled") {
    check(shuffled === undefined, "the promise of shuffled reports goes with shuffled privacy");
    return;
  }
  check(shuffled !== undefined, "shuffled reports promise an epsilon and a delta together");
  exactly(shuffled, ["epsilon", "delta"], "shuffled");
  checkEpsilon(fraction(shuffled.epsilon, "epsilon"));
  const { top, bottom } = fraction(shuffled.delta, "delta");
  check(top > 0n && top < bottom, "delta must lie between 0 and 1");
  check(step === undefined, "shuffled reports are asked for once");
}

function checkLevels(content, policy, levels, isLocal) {
  if (!policy.everyLevel) return;
  if (content.hierarchy.kind === "interleaved") {
    throw new Refused("interleaved levels are for clients that report on one level each");
  }
  check(
    !isLocal || levels === 1,
    "under local privacy a client reports on one level",
  );
}

/** Two models are asked for by joint cells: whoever reports on one margin tells nothing of the pair. */
function checkPair(content, policy, levels) {
  const isPlain = policy.everyLevel && levels === 1 && content.hierarchy.kind === "tree";
  const isAlone = content.step === undefined && content.groups === undefined;
  check(
    content.grid.kind !== "pair" || (isPlain && isAlone),
    "two models are asked for by joint cells, in one survey without groups",
  );
}

function checkUnit(unit) {
  check(unit?.kind !== "patient", `unit patient is ${ELSEWHERE}`);
  exactly(unit, ["kind", "max_examples"], "unit");
  check(["example", "client"].includes(unit.kind), '"kind" is one of example, client');
  wholeNumber(unit.max_examples, 1, MOST_EXAMPLES, "max_examples");
  check(
    unit.kind === "client" || unit.max_examples === 1,
    "max_examples goes with the client unit",
  );
}

function checkModel(digest) {
  check(
    digest === null || (typeof digest === "string" && /^[0-9a-f]{64}$/.test(digest)),
    "a model digest is 64 lower-case hexadecimal digits",
  );
}

/** What one unit spends: the most of any level, or the sum where each client pays for all. */
function epsilonOf(mechanisms, policy) {
  const spent = mechanisms.map(({ epsilon }) => epsilon);
  if (spent.includes(null)) return null;
  return spent.reduce(policy.everyLevel ? add : (a, b) => (isAbove(b, a) ? b : a));
}
