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
  fine: { mostCells: 2 ** 19, edges: fine },
  octaves: { mostCells: 78 * 2 ** 12 + 2, edges: octaves },
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

/** The cells of one model's scores, or of two models' of the same rows: { edges, second, cells }. */
export function gridOf(grid) {
  if (grid?.kind !== "pair") {
    const edges = edgesOf(grid);
    return { edges, second: null, cells: edges.length - 1 };
  }
  exactly(grid, ["kind", "names", "first", "second"], "grid");
  const { names } = grid;
  check(Array.isArray(names) && names.length === 2, "two models are compared on the same rows");
  check(
    names.every(isModelName),
    "a model's name has 1 to 40 letters, digits, dots, dashes or underscores",
  );
  check(names[0] !== names[1], "two models have two names");
  const [edges, second] = [edgesOf(grid.first), edgesOf(grid.second)];
  const cells = (edges.length - 1) * (second.length - 1);
  check(cells <= MOST_CELLS, `a pair of grids has at most ${MOST_CELLS} cells together`);
  return { edges, second, cells };
}

function isModelName(name) {
  return typeof name === "string" && /^[A-Za-z0-9_.-]{1,40}$/.test(name);
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
  check(rule, "a grid is one of uniform, cubic, fine, octaves, edges");
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

/** i / n, octaves in 64 parts where these are fewer, then 2^-k up to k = 52; mirrored at 1. */
function fine(n) {
  let first = 2;
  while (64 * 2 ** first <= n) first++;
  const edges = [...upTo(n).map((i) => i / n), ...octaveEdges(64, first)];
  for (let k = 41; k <= 52; k++) edges.push(1 / 2 ** k, (2 ** k - 1) / 2 ** k);
  return sortedOnce(edges);
}

/** Each octave from 2^-40 to 1/2 in equal parts, mirrored at 1, and the ends. */
function octaves(n) {
  const parts = (n - 2) / 78;
  check(
    Number.isInteger(parts) && parts >= 1,
    "the cells of an octaves grid are 78 times its parts per octave, and 2",
  );
  return sortedOnce([0, 1, ...octaveEdges(parts, 2)]);
}

/** (c + j) / (c 2^k) for k from `first` to 40 and j up to c, and 1 less these; unsorted. */
function octaveEdges(c, first) {
  const edges = [];
  for (let k = first; k <= 40; k++) {
    const bottom = c * 2 ** k;
    for (let top = c; top <= 2 * c; top++) edges.push(top / bottom, (bottom - top) / bottom);
  }
  return edges;
}

/** In rising order; an edge that is made twice is the same double, and stands once. */
function sortedOnce(edges) {
  return Array.from(new Float64Array(new Set(edges)).sort());
}
