// Levels: ways to group the leaf cells into coarser cells, each { cells, cellOf(leaf, label) }.
import { exactly, wholeNumber } from "./fields.js";
import { Refused, check } from "./refused.js";

const MOST_LEVELS_OF_A_TREE = 20;
const MOST_CHOSEN_LEVELS = 32;
const MOST_CHOSEN_LEAVES = 2048;
const MOST_CHOSEN_CELLS = 8192;
const MOST_WEIGHT = 1024;

/** The levels of a survey over so many leaves, the coarsest first. */
export function levelsOf(hierarchy, leaves) {
  switch (hierarchy?.kind) {
    case "tree":
      return treeLevels(hierarchy, leaves);
    case "interleaved":
      return interleavedLevels(hierarchy, leaves);
    case "cuts":
      return chosenLevels(hierarchy, leaves);
  }
  check(hierarchy?.kind !== "pair", "margins of two models are answered with the fedassay package, not here");
  throw new Refused("levels are a tree, interleaved or cuts");
}

/** A cell of level k holds as many leaves as the fan-outs below k multiply to. */
function treeLevels(hierarchy, leaves) {
  exactly(hierarchy, ["kind", "fanouts"], "hierarchy");
  const { fanouts } = hierarchy;
  check(
    Array.isArray(fanouts) && fanouts.length >= 1 && fanouts.length <= MOST_LEVELS_OF_A_TREE,
    "a hierarchy has between 1 and 20 levels",
  );
  const smallest = leaves === 1 ? 1 : 2;
  check(
    fanouts.every((each) => Number.isInteger(each) && each >= smallest),
    `every fan-out must be at least ${smallest}`,
  );
  const product = fanouts.reduce((a, b) => a * b, 1);
  check(product >= leaves && product <= 2 ** 24, "the fan-outs' product must reach the leaves");
  return fanouts.map((_, k) => {
    const block = fanouts.slice(k + 1).reduce((a, b) => a * b, 1);
    return { cells: Math.ceil(leaves / block), cellOf: (leaf) => Math.floor(leaf / block) };
  });
}

/** Level k is cut before the leaves k + 1, k + 1 + step, k + 1 + 2 step, ... */
function interleavedLevels(hierarchy, leaves) {
  exactly(hierarchy, ["kind", "step"], "hierarchy");
  check(leaves >= 2 && leaves <= 256, "interleaved levels have between 2 and 256 leaves");
  const step = wholeNumber(hierarchy.step, 1, leaves - 1, "step");
  return Array.from({ length: step }, (_, k) => {
    const cellOf = (leaf) => (leaf <= k ? 0 : Math.floor((leaf - k - 1) / step) + 1);
    return { cells: cellOf(leaves - 1) + 1, cellOf };
  });
}

/** Cells of their own for each label, and perhaps a last level of weighted sums, one a label. */
function chosenLevels(hierarchy, leaves) {
  const isWeighted = Object.hasOwn(hierarchy, "weights");
  exactly(hierarchy, ["kind", "levels", ...(isWeighted ? ["weights"] : [])], "hierarchy");
  check(
    Array.isArray(hierarchy.levels) && hierarchy.levels.length <= MOST_CHOSEN_LEVELS,
    `chosen levels are lists of at most ${MOST_CHOSEN_LEVELS} entries`,
  );
  check(leaves <= MOST_CHOSEN_LEAVES, `the leaves of chosen levels must be at most ${MOST_CHOSEN_LEAVES}`);
  const levels = hierarchy.levels.map((level) => cutLevel(pair(level, leaves), leaves));
  if (isWeighted) levels.push(weightedLevel(pair(hierarchy.weights, leaves), leaves));
  check(
    levels.length >= 1 && levels.length <= MOST_CHOSEN_LEVELS,
    `chosen levels are from 1 to ${MOST_CHOSEN_LEVELS}`,
  );
  check(
    levels.reduce((sum, { cells }) => sum + cells, 0) <= MOST_CHOSEN_CELLS,
    `chosen levels have at most ${MOST_CHOSEN_CELLS} cells together`,
  );
  return levels;
}

function cutLevel(starts, leaves) {
  for (const each of starts) {
    check(
      each.every((start) => start >= 0 && start < leaves),
      "the first leaf of a cell must be from 0 to the last leaf",
    );
    check(
      each[0] === 0 && each.every((start, i) => i === 0 || each[i - 1] < start),
      "cells must start at leaf 0 and at rising leaves after it",
    );
  }
  return {
    cells: Math.max(...starts.map((each) => each.length)),
    cellOf: (leaf, label) => starts[label].findLastIndex((start) => start <= leaf),
  };
}

function weightedLevel(weights, leaves) {
  for (const each of weights) {
    check(each.length === leaves, `there must be one weight for each of ${leaves} leaves`);
    check(
      each.every((weight) => Math.abs(weight) <= MOST_WEIGHT),
      `a weight must be from -${MOST_WEIGHT} to ${MOST_WEIGHT}`,
    );
  }
  check(
    weights.some((each) => each.some((weight) => weight !== 0)),
    "weights must not all be 0",
  );
  return { cells: 1, cellOf: () => 0, weights };
}

/** Two lists of whole numbers: of negatives and of positives. */
function pair(lists, leaves) {
  check(
    Array.isArray(lists) &&
      lists.length === 2 &&
      lists.every(
        (each) =>
          Array.isArray(each) && each.length <= leaves && each.every((x) => Number.isSafeInteger(x)),
      ),
    "chosen levels are two lists of whole numbers each",
  );
  return lists;
}
