// The grid: leaf cells (lo, hi] over [0, 1], the first of which also holds 0.
import { exactly, rising, wholeNumber } from "./fields.js";
import { check } from "./refused.js";

const MOST_CELLS = 2 ** 20;

// One division of whole numbers below 2^53 per edge: the same doubles in every language.
const RULES = {
  uniform: { mostCells: MOST_CELLS, edges: (n) => upTo(n).map((i) => i / n) },
  cubic: {
    mostCells: 2 ** 16,
    edges: (n) => upTo(n).map((i) => (i * i * (3 * n - 2 * i)) / (n * n * n)),
  },
  fine: { mostCells: MOST_CELLS, edges: fine },
};

/** All edges of a survey's grid, from 0 to 1. */
export function edgesOf(grid) {
  const edges = grid?.kind === "edges" ? explicitEdges(grid) : edgesByRule(grid);
  check(
    edges.length >= 2 && edges[0] === 0 && edges[edges.length - 1] === 1,
    "grid edges must run from 0 to 1",
  );
  check(edges.length <= MOST_CELLS + 1, `a grid needs between 2 and ${MOST_CELLS + 1} edges`);
  return edges;
}

/** The cell that a score in [0, 1] falls into. */
export function cellOfScore(edges, score) {
  let [low, high] = [0, edges.length - 1];
  // The last edge below the score; 0 itself has none and belongs to the first cell.
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (edges[middle] < score) low = middle;
    else high = middle;
  }
  return low;
}

function explicitEdges(grid) {
  exactly(grid, ["kind", "edges"], "grid");
  return rising(grid.edges, "edges");
}

function edgesByRule(grid) {
  const rule = Object.keys(RULES).find((kind) => kind === grid?.kind);
  check(rule, "a grid is one of uniform, cubic, fine, edges");
  const isChanged = Object.hasOwn(grid, "without") || Object.hasOwn(grid, "with");
  exactly(grid, ["kind", "cells", ...(isChanged ? ["without", "with"] : [])], "grid");
  const { edges, mostCells } = RULES[rule];
  const made = edges(wholeNumber(grid.cells, 1, mostCells, "cells"));
  if (!isChanged) return made;
  const without = rising(grid.without, "without");
  check(
    without.every((i) => Number.isInteger(i) && i > 0 && i < made.length - 1),
    '"without" must name inner edges by their number',
  );
  const added = rising(grid.with, "with");
  check(added.every((edge) => edge > 0 && edge < 1), "grid edges must run from 0 to 1");
  check(
    without.length + added.length > 0 && !added.some((edge) => isEdge(made, edge)),
    "a survey says everything in one way: a grid changes what it must and nothing else",
  );
  const gone = new Set(without);
  return [...made.filter((_, i) => !gone.has(i)), ...added].sort((a, b) => a - b);
}

function isEdge(edges, inner) {
  return edges[cellOfScore(edges, inner) + 1] === inner;
}

function upTo(n) {
  return Array.from({ length: n + 1 }, (_, i) => i);
}

/** i / n, and 2^-k and 1 - 2^-k for each k up to 52 with 2^k > n. */
function fine(n) {
  const tails = [];
  for (let k = 52; 2 ** k > n; k--) tails.push(2 ** -k);
  const inner = upTo(n).slice(1, -1);
  return [0, ...tails, ...inner.map((i) => i / n), ...tails.map((t) => 1 - t).reverse(), 1];
}
