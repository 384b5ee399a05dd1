// The page's figures at every threshold of a data block: JSON in, JSON out.
import { readFileSync } from "node:fs";

const [script] = process.argv.slice(2);
const data = JSON.parse(readFileSync(0, "utf8"));
const metrics = new Function(`${readFileSync(script, "utf8")}; return fedassayMetrics;`)();
const found = data.thresholds.map((_, index) => {
  const at = metrics.confusionAt(data, index);
  const figures = Object.entries(metrics.figures).map(([name, figure]) => [name, figure(at)]);
  const over = [["over_all", metrics.netBenefit(at, "over")], ["all", metrics.netBenefit(at, "all")]];
  return Object.fromEntries([...figures, ...over]);
});
process.stdout.write(JSON.stringify(found));
