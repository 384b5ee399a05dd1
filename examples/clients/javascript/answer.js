// node answer.js survey.json scores.csv report.fa --largest-epsilon 5 [--client-id ID] ...
import { readFile, writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { Refused, answer, fraction, readSurvey } from "./client.js";

const OPTIONS = {
  "largest-epsilon": { type: "string" },
  "smallest-cohort": { type: "string", default: "1" },
  "model-digest": { type: "string", multiple: true, default: [] },
  "client-id": { type: "string" },
  label: { type: "string", default: "label" },
  score: { type: "string", default: "score" },
  "second-score": { type: "string" },
  "group-column": { type: "string" },
};

/** Rows of a plain CSV file with a header: numbers, no quotes. */
function readExamples(text, columns) {
  const [header, ...lines] = text.trim().split(/\r?\n/);
  const names = header.split(",");
  const wanted = [columns.label, columns.score, columns["second-score"], columns["group-column"]];
  const places = wanted.map((name) => {
    if (name !== undefined && !names.includes(name)) {
      throw new Refused(`there is no column ${JSON.stringify(name)}`);
    }
    return names.indexOf(name);
  });
  return lines.map((line) => {
    const values = line.split(",");
    const [label, score, second, group] = places.map((place) => values[place]);
    return { label: number(label), score: number(score), second: number(second), group };
  });
}

/** A number, or NaN where there is none: Number("") would be 0. */
function number(text) {
  return text?.trim() ? Number(text) : NaN;
}

async function main() {
  const { values, positionals } = parseArgs({ options: OPTIONS, allowPositionals: true });
  const [surveyFile, table, output] = positionals;
  if (!output || !values["largest-epsilon"]) {
    throw new Refused("usage: answer.js SURVEY TABLE.csv REPORT --largest-epsilon E");
  }
  const limits = {
    largestEpsilon: fraction(values["largest-epsilon"], "largest-epsilon"),
    smallestCohort: Number(values["smallest-cohort"]),
    modelDigests: values["model-digest"],
  };
  const survey = await readSurvey(await readFile(surveyFile));
  const examples = readExamples(await readFile(table, "utf8"), values);
  const report = await answer(survey, examples, limits, { clientId: values["client-id"] });
  // Only the owner may read it, and nothing is overwritten.
  await writeFile(output, report, { mode: 0o600, flag: "wx" });
}

try {
  await main();
} catch (error) {
  console.error(`${error.name}: ${error.message}`);
  process.exitCode = 1;
}
