// Groups of rows: those that a survey names, rows that say nothing, and all others.
import { exactly } from "./fields.js";
import { check } from "./refused.js";

const MOST_GROUPS = 100;
const MOST_LETTERS = 200;
const [MISSING, UNKNOWN] = ["(missing)", "(unknown)"];
// What Python's strip takes away; JavaScript's trim takes a little more and a little less.
const BLANK = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const BLANKS = new RegExp(`^${BLANK}+|${BLANK}+$`, "g");

/** Read which groups have cells of their own: { parts, partOf(value) }; null for none. */
export function groupsOf(content) {
  if (content === undefined) return null;
  exactly(content, ["column", "names"], "groups");
  const { column, names } = content;
  check(
    typeof column === "string" && column !== "" && letters(column) <= MOST_LETTERS,
    `a column of groups has a name of 1 to ${MOST_LETTERS} letters`,
  );
  const count = Array.isArray(names) ? names.length : 0;
  check(count <= MOST_GROUPS, `a column of groups has at most ${MOST_GROUPS} values`);
  check(
    count >= 1 && names.every(isName) && new Set(names).size === count,
    `groups are named once each, by 1 to ${MOST_LETTERS} letters without blanks around them`,
  );
  const known = new Map([...names, ""].map((name, i) => [name, i]));
  return {
    column,
    parts: names.length + 2,
    partOf: (value) => known.get(nameOf(value)) ?? names.length + 1,
  };
}

function isName(name) {
  return (
    typeof name === "string" &&
    name !== "" &&
    letters(name) <= MOST_LETTERS &&
    name === name.replace(BLANKS, "") &&
    ![MISSING, UNKNOWN].includes(name)
  );
}

/** What a value is called: the same from an app as from a table; nothing if it is missing. */
function nameOf(value) {
  if (value === undefined || value === null || Number.isNaN(value)) return "";
  const text = String(value).replace(BLANKS, "");
  return [...text].slice(0, MOST_LETTERS).join("").replace(BLANKS, "");
}

function letters(text) {
  return [...text].length;
}
