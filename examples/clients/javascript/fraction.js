// Exact rationals, as files write them: "1/3", or "2" for a whole number; lowest terms only.
import { check } from "./refused.js";

const TEXT = /^(0|[1-9][0-9]{0,11})(?:\/([1-9][0-9]{0,11}))?$/;

/** Read a fraction as { top, bottom }. */
export function fraction(text, name) {
  const parts = typeof text === "string" ? TEXT.exec(text) : null;
  check(parts, `"${name}" must be a fraction such as "1/3"`);
  const [top, bottom] = [BigInt(parts[1]), BigInt(parts[2] ?? 1)];
  const inLowestTerms = parts[2] === undefined || (bottom > 1n && gcd(top, bottom) === 1n);
  check(inLowestTerms, `"${name}" says everything in one way: in lowest terms`);
  return { top, bottom };
}

/** a + b. */
export function add(a, b) {
  const [top, bottom] = [a.top * b.bottom + b.top * a.bottom, a.bottom * b.bottom];
  const common = gcd(top, bottom);
  return { top: top / common, bottom: bottom / common };
}

/** Whether a > b. */
export function isAbove(a, b) {
  return a.top * b.bottom > b.top * a.bottom;
}

/** The largest whole number that is at most a * scale. */
export function floorOf(a, scale) {
  return (a.top * scale) / a.bottom;
}

/** c_0, c_1, ...: each fraction and those before it, added up. */
export function cumulated(fractions) {
  let sum = { top: 0n, bottom: 1n };
  return fractions.map((each) => (sum = add(sum, each)));
}

function gcd(a, b) {
  return b === 0n ? a : gcd(b, a % b);
}
