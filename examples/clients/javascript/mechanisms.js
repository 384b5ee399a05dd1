// What happens to one example before it leaves: bytes that protect themselves.
//
// `hit` is a place in [0, d): label * cells + cell, with d = 2 * cells; -1 is a client with
// nothing. All comparisons are between whole numbers, so the probabilities are exact.
import { exactly } from "./fields.js";
import { fraction } from "./fraction.js";
import { checkEpsilon, mustBe, responseNumerator, unaryNumerator } from "./probabilities.js";
import { Refused, check } from "./refused.js";

const VALUE_BYTES = 4;

/** Read the mechanism of a level with so many cells: { kind, epsilon, rowBytes, row, ... }. */
export function mechanismOf(content, cells, allowEmpty) {
  switch (content?.kind) {
    case "exact":
      exactly(content, ["kind"], "mechanism");
      return { kind: "exact", epsilon: null };
    case "polya":
      exactly(content, ["kind", "epsilon"], "mechanism");
      return { kind: "polya", epsilon: epsilonOf(content) };
    case "oue":
      return unaryEncoding(content, 2 * cells);
    case "grr":
      return randomizedResponse(content, 2 * cells, allowEmpty);
  }
  throw new Refused("mechanisms are exact, polya, oue, grr");
}

/** OUE: the own bit is a fair coin, any other is 1 with probability q. */
function unaryEncoding(content, d) {
  exactly(content, ["kind", "epsilon", "q"], "mechanism");
  const epsilon = epsilonOf(content);
  const numerator = unaryNumerator(epsilon);
  mustBe(content.q, numerator, 24n, "q");
  const rowBytes = Math.ceil(d / 8);
  return {
    kind: "oue",
    epsilon,
    numerator,
    rowBytes,
    row(hit, dice) {
      const row = new Uint8Array(rowBytes);
      const heads = Number(this.numerator);
      for (let place = 0; place < d; place++) {
        const bit = place === hit ? dice.bit() : dice.word24() < heads;
        if (bit) row[place >> 3] |= 1 << (place & 7);
      }
      return row;
    },
    checkRow(row) {
      const past = d % 8 === 0 ? 0 : row[rowBytes - 1] >> d % 8;
      check(past === 0, "bits past the last cell must be zero");
    },
  };
}

/** GRR: the own value with probability p, else one of the others uniformly. */
function randomizedResponse(content, d, allowEmpty) {
  exactly(content, ["kind", "epsilon", "p"], "mechanism");
  const epsilon = epsilonOf(content);
  const values = d + (allowEmpty ? 1 : 0);
  const numerator = responseNumerator(epsilon, values);
  mustBe(content.p, numerator, 64n, "p");
  return {
    kind: "grr",
    epsilon,
    numerator,
    rowBytes: VALUE_BYTES,
    row(hit, dice) {
      // A client with nothing sends the value d, or any other.
      const own = hit < 0 ? d : hit;
      let value = own;
      if (dice.word64() >= this.numerator) {
        const other = dice.below(values - 1);
        value = other < own ? other : other + 1;
      }
      const row = new Uint8Array(VALUE_BYTES);
      new DataView(row.buffer).setUint32(0, value, true);
      return row;
    },
    checkRow(row) {
      const value = new DataView(row.buffer, row.byteOffset).getUint32(0, true);
      check(value < values, `values on this level lie below ${values}`);
    },
  };
}

function epsilonOf(content) {
  const epsilon = fraction(content.epsilon, "epsilon");
  checkEpsilon(epsilon);
  return epsilon;
}
