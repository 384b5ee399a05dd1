// Fields of untrusted objects: all that must be there, and nothing else.
import { check } from "./refused.js";

/** Throw unless the value is an object with exactly these fields. */
export function exactly(value, names, where) {
  check(
    typeof value === "object" && value !== null && !Array.isArray(value),
    `${where}: expected an object`,
  );
  const unknown = Object.keys(value).find((name) => !names.includes(name));
  // A field that this client does not know might change the meaning of those it knows.
  check(unknown === undefined, `${where}: unknown field ${JSON.stringify(unknown)}`);
  const missing = names.find((name) => !Object.hasOwn(value, name));
  check(missing === undefined, `${where}: field "${missing}" is missing`);
}

/** A whole number within limits. */
export function wholeNumber(value, low, high, name) {
  check(
    Number.isInteger(value) && value >= low && value <= high,
    `"${name}" must be a whole number from ${low} to ${high}`,
  );
  return value;
}

/** True or false. */
export function boolean(value, name) {
  check(typeof value === "boolean", `"${name}" must be true or false`);
  return value;
}

/** A list of numbers, each above the one before it. */
export function rising(value, name) {
  check(
    Array.isArray(value) && value.length <= 2 ** 16 + 1 && value.every(Number.isFinite),
    `"${name}" must be a list of at most 65537 numbers`,
  );
  check(
    value.every((each, i) => i === 0 || value[i - 1] < each),
    `"${name}" must be in rising order, each once`,
  );
  return value;
}
