// Answers surveys in bulk: a list of jobs in a file, one report file for each.
//
// A job may plant a bug, so that the tests of laws are seen to catch it.
import { readFileSync, writeFileSync } from "node:fs";
import { answer, fraction, readSurvey } from "../../examples/clients/javascript/client.js";
import { Dice } from "../../examples/clients/javascript/dice.js";

const LIMITS = { largestEpsilon: fraction("10", "limit") };

const PLANTED = {
  none() {},
  /** Probabilities that are off by a quarter. */
  "biased coins"(survey) {
    for (const { mechanism } of survey.levels) {
      mechanism.numerator = (mechanism.numerator * 3n) / 4n;
    }
  },
  /** The own bit is drawn like any other. */
  "no own bit"(survey, dice) {
    dice.bit = () => dice.word24() < Number(survey.levels[0].mechanism.numerator);
  },
  /** The order of reports is that of the table. */
  "sorted reports"(_, dice) {
    dice.shuffle = (list) => list;
  },
  /** All levels are drawn as often. */
  "even levels"(survey) {
    const count = BigInt(survey.levels.length);
    survey.policy.upTo = survey.levels.map((_, k) => ({ top: BigInt(k + 1), bottom: count }));
  },
};

for (const job of JSON.parse(readFileSync(process.argv[2], "utf8"))) {
  const examples = job.examples.map(([label, score]) => ({ label, score }));
  const parts = [];
  for (let client = 0; client < job.clients; client++) {
    const survey = await readSurvey(new TextEncoder().encode(job.survey));
    const dice = new Dice();
    PLANTED[job.planted](survey, dice);
    parts.push(await answer(survey, examples, LIMITS, { clientId: `client ${client}`, dice }));
  }
  writeFileSync(job.output, Buffer.concat(parts));
}
