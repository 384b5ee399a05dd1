// node vectors.js [FOLDER]: this client against all test vectors; every other client's model.
import { readFileSync } from "node:fs";
import { canonical, parseCanonical } from "./canonical.js";
import { answer, answersStep, fraction, hashedLevel, hitOf, levelOfWord, readSurvey } from "./client.js";
import { cellOfScore } from "./grid.js";
import { sha256 } from "./platform.js";
import { responseNumerator, scaledExp, unaryNumerator } from "./probabilities.js";
import { Refused } from "./refused.js";
import { checkMessage, encodeCounters } from "./wire.js";

const folder = process.argv[2] ?? new URL("../../../tests/vectors", import.meta.url).pathname;
const read = (name) => JSON.parse(readFileSync(`${folder}/${name}.json`, "utf8"));
const bytesOf = (text) => new TextEncoder().encode(text);
const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (two) => parseInt(two, 16));
const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const surveyOf = (content) => readSurvey(bytesOf(canonical(content)));
const ANY = { largestEpsilon: fraction("10", "limit") };

let passed = 0;
const failures = [];

/** Compare by canonical text, whole numbers of any size as text. */
function equal(name, found, wanted) {
  const [a, b] = [found, wanted].map((each) => canonical(each));
  if (a === b) passed++;
  else failures.push(`${name}: found ${a.slice(0, 300)}, wanted ${b.slice(0, 300)}`);
}

/** The attempt must be refused, and for this reason. */
async function refused(name, attempt, says = "") {
  try {
    await attempt();
  } catch (error) {
    if (error instanceof Refused && error.message.includes(says)) passed++;
    else failures.push(`${name}: wanted a refusal with "${says}", found ${error}`);
    return;
  }
  failures.push(`${name}: was accepted`);
}

async function canonicalVectors() {
  const { numbers, good, bad } = read("canonical");
  for (const [bits, text] of numbers) {
    equal(`number ${bits}`, canonical(new DataView(unhex(bits).buffer).getFloat64(0)), text);
  }
  for (const each of good) {
    equal(each.name, canonical(JSON.parse(each.json)), each.canonical);
    parseCanonical(bytesOf(each.canonical));
  }
  for (const each of bad) await refused(each.name, () => parseCanonical(bytesOf(each.json)));
}

async function surveyVectors() {
  const { good, bad } = read("surveys");
  for (const each of good) {
    const survey = await surveyOf(each.survey);
    const { name } = each;
    equal(`${name}: canonical`, canonical(survey.content), each.canonical);
    equal(`${name}: fingerprint`, hex(survey.fingerprint), each.fingerprint);
    equal(`${name}: edges`, await edgesDigest(survey.edges), each.edges_sha256);
    const { leaves } = survey;
    const levels = survey.levels.map((level) => ({
      cells: level.cells,
      starts: startsOf(level, leaves, 0).slice(0, 20),
      ...(survey.content.hierarchy.kind === "cuts"
        ? { starts_of_positives: startsOf(level, leaves, 1).slice(0, 20) }
        : {}),
      probability: String(level.mechanism.numerator ?? ""),
    }));
    equal(`${name}: levels`, levels, each.levels);
    for (const [score, cell] of each.cells_of_scores) {
      equal(`${name}: cell of ${score}`, cellOfScore(survey.edges, score), cell);
    }
    const parts = (value) => value && [value.top, value.bottom].map(String);
    equal(`${name}: epsilon`, parts(survey.epsilon), each.epsilon);
    equal(`${name}: epsilon in all`, parts(survey.totalEpsilon), each.total_epsilon);
  }
  for (const each of bad) await refused(each.name, () => readSurvey(bytesOf(each.text)), each.says);
}

/** SHA-256 of all edges as big-endian doubles. */
async function edgesDigest(edges) {
  const view = new DataView(new ArrayBuffer(8 * edges.length));
  edges.forEach((edge, i) => view.setFloat64(8 * i, edge));
  return hex(await sha256(view.buffer));
}

function startsOf({ cellOf }, leaves, label) {
  const all = Array.from({ length: leaves }, (_, leaf) => leaf);
  return all.filter((leaf) => leaf === 0 || cellOf(leaf, label) !== cellOf(leaf - 1, label));
}

async function levelVectors() {
  for (const each of read("levels").good) {
    const survey = await surveyOf(each.survey);
    for (const [id, level] of each.ids) equal(`id ${id}`, await hashedLevel(survey, id), level);
    for (const [word, level] of each.words) {
      equal(`word ${word}`, levelOfWord(survey, word), level);
    }
  }
}

async function leafVectors() {
  const { good, bad } = read("leaves");
  for (const { name, survey: content, fingerprint, rows } of good) {
    const survey = await surveyOf(content);
    equal(`${name}: fingerprint`, hex(survey.fingerprint), fingerprint);
    rows.forEach(([label, score, second, group, place], i) => {
      equal(`${name}: row ${i}`, hitOf(survey, { label, score, second, group }, i), place);
    });
  }
  for (const each of bad) await refused(each.name, () => readSurvey(bytesOf(each.text)), each.says);
}

async function stepVectors() {
  for (const each of read("steps").good) {
    const survey = await surveyOf(each.survey);
    for (const [name, isAsked] of each.names) {
      equal(`step of ${name}`, await answersStep(survey, name), isAsked);
    }
  }
}

function probabilityVectors() {
  for (const { epsilon, scaled_exp, oue, grr } of read("probabilities").good) {
    const value = fraction(epsilon, "epsilon");
    equal(`e^${epsilon}`, String(scaledExp(value)), scaled_exp);
    equal(`oue at ${epsilon}`, String(unaryNumerator(value)), oue);
    for (const [values, p] of grr) {
      equal(`grr of ${values} at ${epsilon}`, String(responseNumerator(value, values)), p);
    }
  }
}

/** Says what was recorded, in place of dice. */
class Recorded {
  #drawn;
  #bits;

  constructor(drawn) {
    this.#drawn = structuredClone(drawn);
  }
  shuffle(list) {
    const sorted = [...list].sort((a, b) => a - b);
    this.#drawn.order.forEach((from, to) => (list[to] = sorted[from]));
  }
  word32() {
    return this.#drawn.level_words.shift();
  }
  bit() {
    return this.#next().own;
  }
  word24() {
    // 0 is below any numerator, 2^24 - 1 is not.
    return this.#next().others.shift() === 1 ? 0 : 2 ** 24 - 1;
  }
  word64() {
    return BigInt(`0x${this.#drawn.reports[0].word}`);
  }
  below(limit) {
    if (this.#drawn.kept !== undefined) return this.#take("kept");
    const { other } = this.#drawn.reports[0];
    if (other >= limit) throw new Error("the recorded value is out of reach");
    return other;
  }
  bytes() {
    return unhex(this.#drawn.report_ids.shift());
  }
  /** Called after each report. */
  nextReport() {
    this.#bits = undefined;
    this.#drawn.reports.shift();
  }
  #next() {
    this.#bits ??= { ...this.#drawn.reports[0], others: [...this.#drawn.reports[0].others].map(Number) };
    return this.#bits;
  }
  #take(name) {
    const value = this.#drawn[name];
    delete this.#drawn[name];
    return value;
  }
}

async function answerVectors() {
  for (const { name, survey: content, client_id: clientId, examples, drawn, bytes } of read("answers").good) {
    const survey = await surveyOf(content);
    const dice = new Recorded(drawn);
    for (const { mechanism } of survey.levels) {
      const row = mechanism.row;
      mechanism.row = function (...args) {
        const made = row.apply(this, args);
        dice.nextReport();
        return made;
      };
    }
    const rows = examples.map(([label, score]) => ({ label, score }));
    const sent = await answer(survey, rows, ANY, { clientId: clientId ?? undefined, dice });
    equal(name, hex(sent), bytes);
  }
}

async function reportVectors() {
  const { good, bad } = read("reports");
  for (const { name, survey: content, level, report_id: id, counters, bytes } of good) {
    const survey = await surveyOf(content);
    const sent = encodeCounters(survey.fingerprint, unhex(id), level, counters);
    equal(name, hex(sent), bytes);
    checkMessage(sent, survey);
  }
  for (const { name, survey: content, bytes, says } of bad) {
    const survey = await surveyOf(content);
    await refused(name, () => checkMessage(unhex(bytes), survey), says);
  }
}

await canonicalVectors();
await surveyVectors();
await levelVectors();
await leafVectors();
await stepVectors();
probabilityVectors();
await answerVectors();
await reportVectors();
for (const failure of failures) console.error(failure);
console.log(`${passed} vectors passed, ${failures.length} failed`);
process.exitCode = failures.length === 0 && passed > 0 ? 0 : 1;
