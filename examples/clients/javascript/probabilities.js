// Probabilities in whole numbers: the same in every language, and never above epsilon.
import { Refused, check } from "./refused.js";

const SCALE = 1n << 192n;
const LARGEST_EPSILON = 50n;
const LARGEST_BOTTOM = 10n ** 9n;

/** Throw unless an epsilon is above 0, at most 50 and a simple fraction. */
export function checkEpsilon({ top, bottom }) {
  check(top > 0n && top <= LARGEST_EPSILON * bottom, "epsilon must be above 0 and at most 50");
  check(bottom <= LARGEST_BOTTOM, "epsilon must be a simple fraction");
}

/** A whole number just below e^epsilon 2^192: the power series, each term rounded down. */
export function scaledExp({ top, bottom }) {
  let [sum, term] = [SCALE, SCALE];
  for (let k = 1n; term > 0n; k++) {
    term = (term * top) / (bottom * k);
    sum += term;
  }
  return sum;
}

/** OUE: q = 1 / (e^epsilon + 1), rounded up; its numerator over 2^24. */
export function unaryNumerator(epsilon) {
  const bottom = scaledExp(epsilon) + SCALE;
  return ((SCALE << 24n) + bottom - 1n) / bottom;
}

/** GRR: p = e^epsilon / (e^epsilon + values - 1), rounded down; its numerator over 2^64. */
export function responseNumerator(epsilon, values) {
  const power = scaledExp(epsilon);
  return (power << 64n) / (power + SCALE * BigInt(values - 1));
}

/** Throw unless a file's probability is the one that follows from its epsilon. */
export function mustBe(found, numerator, bits, name) {
  const wanted = `${numerator}/${1n << bits}`;
  if (found !== wanted) throw new Refused(`"${name}" must be "${wanted}", as epsilon has it`);
}
