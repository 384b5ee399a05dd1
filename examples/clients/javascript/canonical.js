// Canonical JSON, RFC 8785: one text per content. ECMAScript's own numbers are the rule.
import { Refused, check } from "./refused.js";

const MOST_BYTES = 4 * 2 ** 20;
export const HALF_A_CHARACTER = /\p{Surrogate}/u;

/** The canonical text of a value made of what JSON has. */
export function canonical(value) {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number") {
    check(Number.isFinite(value), "JSON has no infinite or missing numbers");
    return JSON.stringify(value);
  }
  if (typeof value === "string") {
    check(!HALF_A_CHARACTER.test(value), "texts must be valid Unicode; found half a character");
    return JSON.stringify(value);
  }
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  check(typeof value === "object", `JSON has no ${typeof value}`);
  // Texts compare by UTF-16 code units, as the RFC wants it.
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${canonical(name)}:${canonical(value[name])}`).join(",")}}`;
}

/**
 * Read untrusted bytes that must be canonical JSON, with one newline at the end or none.
 *
 * JSON.parse silently takes the last of two fields of one name; a text with such a pair,
 * like any other layout, is not the canonical text of what was read from it.
 */
export function parseCanonical(bytes) {
  check(bytes.length <= MOST_BYTES, `a survey has at most ${MOST_BYTES} bytes`);
  let text, content;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    content = JSON.parse(text);
  } catch {
    throw new Refused("not a JSON file, or cut short");
  }
  check(
    canonical(content) === text.replace(/\n$/, ""),
    "a survey says everything in one way; this text is not canonical JSON",
  );
  return content;
}
