// Levels: ways to group the leaf cells into coarser cells, each { cells, cellOf(leaf) }.
import { exactly, wholeNumber } from "./fields.js";
import { Refused, check } from "./refused.js";

const MOST_LEVELS_OF_A_TREE = 20;

/** The levels of a survey over so many leaves, the coarsest first. */
export function levelsOf(hierarchy, leaves) {
  switch (hierarchy?.kind) {
    case "tree":
      return treeLevels(hierarchy, leaves);
    case "interleaved":
      return interleavedLevels(hierarchy, leaves);
  }
  throw new Refused("levels are a tree or interleaved");
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
