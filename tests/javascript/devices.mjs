// What a device does with the package: one JSON object of standard input asks, one answers.
import { readFileSync } from "node:fs";
import { Account, Refused, answer, answerOnce, fraction, readSurvey, textStore } from "../../examples/clients/javascript/client.js";
import { Dice } from "../../examples/clients/javascript/dice.js";
import { groupsOf } from "../../examples/clients/javascript/groups.js";

const asked = JSON.parse(readFileSync(0, "utf8"));
const LIMITS = { largestEpsilon: fraction("10", "limit") };
const EXAMPLES = [{ label: 1, score: 0.73 }];
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const surveyOf = (text) => readSurvey(new TextEncoder().encode(text));

/** A store that is slow to answer, as a file or a database is; it counts what is written. */
class Slow extends Map {
  written = 0;
  async get(key) {
    await new Promise((done) => setTimeout(done, 1));
    return super.get(key);
  }
  async set(key, bytes) {
    await new Promise((done) => setTimeout(done, 1));
    this.written++;
    return super.set(key, bytes);
  }
}

async function reason(attempt) {
  try {
    await attempt();
    return "accepted";
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return error.message;
  }
}

/** Every way to ask again: later, at the same time, after a restart, with other rows. */
async function retries(text) {
  const survey = await surveyOf(text);
  const kept = {};
  const storage = { getItem: (key) => kept[key] ?? null, setItem: (key, value) => (kept[key] = value) };
  const slow = new Slow();
  const once = (store, rows = EXAMPLES) => answerOnce(store, survey, rows, LIMITS);
  const together = await Promise.all([once(slow), once(slow), once(slow)]);
  const later = [await once(textStore(storage)), await once(textStore(storage), [{ label: 0, score: 0.1 }])];
  const refused = await reason(() => once(slow, [{ label: 2, score: 0.1 }]));
  const damaged = textStore({ getItem: () => btoa("something else"), setItem: () => {} });
  return {
    together: together.map(hex),
    later: later.map(hex),
    written: slow.written,
    refused,
    damaged: await reason(() => once(damaged)),
    anew: hex(await answer(survey, EXAMPLES, LIMITS)),
  };
}

/** What each charge says, and what is spent in the end. */
async function account(texts, most) {
  const store = new Slow();
  const purse = new Account(store, fraction(most, "most"));
  const said = [];
  for (const text of texts) {
    const survey = await surveyOf(text);
    said.push(await reason(() => purse.charge(survey)));
  }
  const { top, bottom } = await purse.spent();
  const again = await new Account(store, fraction(most, "most")).spent();
  return { said, spent: `${top}/${bottom}`, again: `${again.top}/${again.bottom}`, written: store.written };
}

/** The value that a row has before any noise. */
async function values(text, rows) {
  const survey = await surveyOf(text);
  const dice = new Dice();
  dice.word64 = () => 0n;
  const said = [];
  for (const row of rows) {
    const rule = await reason(() => answer(survey, [row], LIMITS, { dice }));
    if (rule !== "accepted") said.push(rule);
    else said.push(Buffer.from(await answer(survey, [row], LIMITS, { dice })).readUInt32LE(60));
  }
  return said;
}

const ASKED = {
  retries: () => retries(asked.survey),
  account: () => account(asked.surveys, asked.most),
  values: () => values(asked.survey, asked.rows),
  groups: () => asked.values.map(groupsOf(asked.groups).partOf),
};
console.log(JSON.stringify(await ASKED[asked.what]()));
