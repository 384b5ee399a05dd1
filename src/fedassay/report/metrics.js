"use strict";
// Figures at a threshold with their 95 % intervals, as fedassay's metrics give them: what
// metrics/confusion_figures.py, given_clear.py, net_benefit.py and estimate.py say in Python.
// A confusion is { counts: [tp, fp, fn, tn], noise: 4 x 4 or null, spread, chance, hidden, lowest, highest:
// [negatives, positives] above the threshold, threshold, z, clear }. An estimate is { value, low, high } or { value: null, why }.
const fedassayMetrics = (() => {
  const SPECK = 1e-9;
  const TAIL = 0.0025;
  const MOST = 0.5;
  const TOO_FEW = "not enough data";
  const COARSE = "too coarse";

  const dot = (a, b) => a.reduce((sum, each, i) => sum + each * b[i], 0);
  const ratio = (top, bottom) => (bottom === 0 ? NaN : top / bottom);

  function confusionAt(data, index) {
    const [negatives, positives] = data.totals;
    const tn = data.below[0][index];
    const fn = data.below[1][index];
    let noise = null;
    if (data.noise !== null) {
      const upper = data.noise[index];
      noise = [0, 1, 2, 3].map((i) =>
        [0, 1, 2, 3].map((j) => {
          const [a, b] = i < j ? [i, j] : [j, i];
          return upper[4 * a - (a * (a - 1)) / 2 + b - a];
        }),
      );
    }
    return {
      counts: [positives - fn, negatives - tn, fn, tn],
      noise,
      spread: [data.spread[0][index], data.spread[1][index]],
      chance: [data.chance[0][index], data.chance[1][index]],
      hidden: [data.hidden[0][index], data.hidden[1][index]],
      lowest: [data.lowest[0][index], data.lowest[1][index]],
      highest: [data.highest[0][index], data.highest[1][index]],
      threshold: data.thresholds[index],
      z: data.z,
      clear: data.clear,
    };
  }

  function noiseSd(at, slope) {
    if (at.noise === null) return 0;
    const variance = dot(slope, at.noise.map((row) => dot(row, slope)));
    return Math.sqrt(Math.max(variance, 0));
  }

  function whyUndefined(at, weights, size, of) {
    const sd = noiseSd(at, weights);
    if (size > SPECK && size >= at.clear * sd) return null;
    const why = sd === 0 ? `no ${of} to divide by` : `${of} do not stand clear of the privacy noise`;
    return { value: null, kind: TOO_FEW, why };
  }

  // The chance that a standard normal number is larger: by a power series, and by a continued fraction from 2.5 on.
  function above(x) {
    if (x < 0) return 1 - above(-x);
    const density = Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
    if (x < 2.5) {
      let term = x;
      let sum = x;
      for (let k = 1; k < 60; k += 1) {
        term *= (x * x) / (2 * k + 1);
        sum += term;
      }
      return 0.5 - density * sum;
    }
    let below = x;
    for (let k = 120; k > 0; k -= 1) below = x + k / below;
    return density / below;
  }

  // How many deviations smaller a sum may be that was to stand clear of its noise, and did.
  function reachGivenClear(stands, bar, z) {
    const margin = stands - bar;
    if (margin > 5) return z;
    let low = z;
    let high = Math.max(0.75 * stands, z);
    const level = 2 * above(z);
    if (above(high) > level * above(high - margin)) return high;
    for (let round = 0; round < 40; round += 1) {
      const middle = 0.5 * (low + high);
      if (above(middle) > level * above(middle - margin)) low = middle;
      else high = middle;
    }
    return high;
  }

  // A deviation whose interval reaches the figure of the smallest divisor that is likely.
  function offBy(at, value, slope, divisor) {
    const sd = noiseSd(at, divisor);
    const reach = sd > 0 ? reachGivenClear(dot(divisor, at.counts) / sd, at.clear, at.z) : at.z;
    if (reach <= at.z) return 0;
    const shared = at.noise.map((row) => dot(row, divisor) / sd);
    const there = value(at.counts.map((n, i) => Math.max(n - reach * shared[i], Math.min(n, 0))));
    const far = Number.isNaN(there) ? 0 : Math.abs(there - value(at.counts));
    const beside = noiseSd(at, slope) ** 2 - dot(slope, shared) ** 2;
    return Math.hypot(far / at.z, Math.sqrt(Math.max(beside, 0)));
  }

  // How far a figure goes with each class at the end of what is likely, over 1.96.
  function moved(at, value, sds) {
    const [tp, fp, fn, tn] = at.counts;
    const ends = [fp, tp].map((count, label) => {
      if (sds[label] === 0) return count;
      const spare = TAIL * (at.highest[label] - at.lowest[label]);
      const end = Math.max(count + at.z * sds[label], at.lowest[label] + spare);
      return Math.min(end, at.highest[label] - spare);
    });
    const there = value([ends[1], ends[0], fn + tp - ends[1], tn + fp - ends[0]]);
    return Number.isNaN(there) ? 0 : Math.abs(there - value(at.counts)) / at.z;
  }

  // The furthest that a figure can be, wherever rows lie inside their bucket.
  function boundOf(at, value) {
    const [tp, fp, fn, tn] = at.counts;
    const centre = value(at.counts);
    const distances = [at.lowest, at.highest].flatMap(([n]) =>
      [at.lowest, at.highest].map(([, p]) => {
        const there = value([p, n, fn + tp - p, tn + fp - n]);
        return Number.isNaN(there) ? Math.max(Math.abs(centre), Math.abs(1 - centre)) : Math.abs(there - centre);
      }),
    );
    return Math.max(...distances);
  }

  // Either class may lie higher or lower inside a bucket, each for itself or both together, but for the luck of
  // their rows; a ratio bends, so that it is read at both ends of what is likely.
  function binningSd(at, spread, value, moves) {
    if (spread[0] === 0 && spread[1] === 0) return 0;
    const lucky = at.chance.map((sd, label) => (sd > 0 ? sd / Math.max(spread[label], sd) : 0));
    const open = spread.map((sd, label) => sd * Math.sqrt(1 - lucky[label] * lucky[label]));
    const ways = [[spread[0], 0], [0, spread[1]], open];
    if (holdsMost(at)) ways.push([open[0], -open[1]]);
    const each = ways.map((way) =>
      Math.max(
        Math.abs(dot(way, moves)),
        ...[-1, 1].map((side) => moved(at, value, way.map((sd) => side * sd))),
      ),
    );
    const luck = Math.hypot(lucky[0] * each[0], lucky[1] * each[1]);
    const together = each.slice(2).map((moved) => Math.hypot(moved, luck));
    return Math.max(Math.hypot(each[0], each[1]), ...together);
  }

  // Whether most of both classes are in the threshold's bucket: it may part them there.
  function holdsMost(at) {
    const [tp, fp, fn, tn] = at.counts;
    const inside = at.highest.map((high, label) => high - at.lowest[label]);
    return inside[0] > MOST * (fp + tn) && inside[1] > MOST * (tp + fn);
  }

  // What n p (1 - p) lacks where a count is small: from the ends of Wilson's interval.
  function ofFew(above, size, kind, z) {
    const isNobody = kind.shape === "logit" && !(above >= 1 && above <= size - 1);
    if (!kind.isStraight && !isNobody) return 0;
    const n = Math.max(size, 1);
    const share = Math.min(Math.max(above / n, 0), 1);
    const plain = n * share * (1 - share);
    const ends = plain + z * z * (0.25 + (0.5 - share) ** 2);
    return Math.max(ends / (1 + (z * z) / n) ** 2 - plain, 0);
  }

  function fromConfusion(at, value, slope, kind) {
    const total = at.counts.reduce((sum, count) => sum + count, 0);
    const mean = dot(at.counts, slope);
    const square = at.counts.reduce((sum, count, i) => sum + count * slope[i] * slope[i], 0);
    const plain = total > 0 ? Math.max(square - (mean * mean) / total, 0) : 0;
    const moves = [slope[1] - slope[3], slope[0] - slope[2]];
    const [tp, fp, fn, tn] = at.counts;
    const few = [ofFew(fp, fp + tn, kind, at.z), ofFew(tp, tp + fn, kind, at.z)];
    const variance = plain + moves[0] ** 2 * few[0] + moves[1] ** 2 * few[1];
    const seen = binningSd(at, at.spread, value, moves);
    const divisors = at.noise === null ? [] : (kind.divisors ?? []);
    const off = divisors.map((divisor) => offBy(at, value, slope, divisor));
    const noise = Math.max(noiseSd(at, slope), ...off);
    const centre = value(at.counts);
    const span = at.threshold === 0 ? Infinity : kind.span;
    const sampling = Math.max(Math.sqrt(variance), kind.least ?? 0);
    const hidden = binningSd(at, at.hidden, value, moves);
    const bound = boundOf(at, value);
    const limit = (bound + noise) / at.z;
    const binning = Math.min(hidden, Math.sqrt(limit * (limit + 2 * Math.hypot(noise, sampling))));
    const isCoarse = at.z * seen > span / 3 && seen > 2 * noise;
    if (isCoarse || (Math.min(at.z * hidden, bound) > MOST * span && hidden > 2 * noise)) {
      return {
        value: null,
        kind: COARSE,
        why: "the survey's cells are too wide to tell here; name this threshold when you ask",
      };
    }
    return interval(centre, { sampling, rest: noise * noise + binning * binning }, kind, at.z);
  }

  function interval(value, errors, kind, z) {
    const inside = value > 0 && value < 1;
    if (kind.shape === "score" || (kind.shape === "logit" && !inside)) {
      const share = (z * z) / kind.trials;
      const centre = (value + share / 2) / (1 + share);
      const square = centre * centre - (value * value - z * z * errors.rest) / (1 + share);
      const half = Math.sqrt(Math.max(square, 0));
      return { value, low: centre - half, high: centre + half };
    }
    if (kind.shape === "logit") {
      const odds = Math.log(value / (1 - value));
      const half = (z * errors.sampling) / (value * (1 - value));
      const room = z * z * errors.rest;
      const away = (end) => Math.sqrt((value - end) ** 2 + room);
      return {
        value,
        low: value - away(expit(odds - half)),
        high: value + away(expit(odds + half)),
      };
    }
    const half = z * Math.sqrt(errors.rest + errors.sampling * errors.sampling);
    return { value, low: value - half, high: value + half };
  }

  const expit = (x) => (x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x)));

  function proportion(at, top, bottom, of) {
    const trials = dot(bottom, at.counts);
    const undefinedHere = whyUndefined(at, bottom, trials, of);
    if (undefinedHere) return undefinedHere;
    const value = (counts) => ratio(dot(top, counts), dot(bottom, counts));
    const share = value(at.counts);
    const slope = top.map((each, i) => (each - share * bottom[i]) / trials);
    return fromConfusion(at, value, slope, {
      shape: "score",
      trials,
      span: 1,
      divisors: [bottom],
    });
  }

  function f1(at) {
    const [tp, fp, fn] = at.counts;
    const bottom = 2 * tp + fn + fp;
    const undefinedHere = whyUndefined(at, [2, 1, 1, 0], bottom, "positives, true or predicted,");
    if (undefinedHere) return undefinedHere;
    const value = ([a, b, c]) => ratio(2 * a, 2 * a + c + b);
    const score = value(at.counts);
    const slope = [(2 * (1 - score)) / bottom, -score / bottom, -score / bottom, 0];
    return fromConfusion(at, value, slope, {
      shape: "logit",
      trials: Math.max(bottom / 2, 1),
      span: 1,
      divisors: [[2, 1, 1, 0]],
    });
  }

  // What an example of each kind is worth: acting above the threshold, on all, or the difference.
  const worthOf = {
    model: (odds) => [1, -odds, 0, 0],
    all: (odds) => [1, -odds, 1, -odds],
    over: (odds) => [0, 0, -1, odds],
  };

  function netBenefit(at, of = "model") {
    if (at.threshold >= 1) {
      return { value: null, kind: TOO_FEW, why: "the odds of a threshold of 1 are infinite" };
    }
    const total = at.counts[0] + at.counts[2] + (at.counts[1] + at.counts[3]);
    const undefinedHere = whyUndefined(at, [1, 1, 1, 1], total, "examples");
    if (undefinedHere) return undefinedHere;
    const worth = worthOf[of](at.threshold / (1 - at.threshold));
    const value = (counts) => dot(worth, counts) / total;
    const mean = value(at.counts);
    const slope = worth.map((each) => (each - mean) / total);
    // Where nobody counts yet the next example may: as if there were half of one.
    const larger = (a, b) => (Math.abs(a) >= Math.abs(b) ? a : b);
    const positive = larger(worth[0], worth[2]);
    const negative = larger(worth[1], worth[3]);
    const rows = at.counts.reduce((sum, n, i) => sum + (worth[i] === 0 ? 0 : Math.abs(n)), 0);
    const t = at.threshold;
    const one = Math.sqrt(t * positive * positive + (1 - t) * negative * negative) / total;
    const least = Math.sqrt(Math.max(1 - rows, 0) / 2) * one;
    return fromConfusion(at, value, slope, { shape: "plain", span: 1, least });
  }

  function flagged(at) {
    const share = proportion(at, [1, 1, 0, 0], [1, 1, 1, 1], "examples");
    if (share.value === null) return share;
    return { value: 1000 * share.value, low: 1000 * share.low, high: 1000 * share.high };
  }

  function countOf(at, index) {
    const unit = [0, 1, 2, 3].map((i) => (i === index ? 1 : 0));
    return fromConfusion(at, (counts) => counts[index], unit, {
      shape: "plain",
      span: Infinity,
      isStraight: true,
    });
  }

  const figures = {
    recall: (at) => proportion(at, [1, 0, 0, 0], [1, 0, 1, 0], "positives"),
    specificity: (at) => proportion(at, [0, 0, 0, 1], [0, 1, 0, 1], "negatives"),
    precision: (at) => proportion(at, [1, 0, 0, 0], [1, 1, 0, 0], "examples above the threshold"),
    npv: (at) => proportion(at, [0, 0, 0, 1], [0, 0, 1, 1], "examples at or below the threshold"),
    f1,
    accuracy: (at) => proportion(at, [1, 0, 0, 1], [1, 1, 1, 1], "examples"),
    net_benefit: (at) => netBenefit(at),
    flagged,
    tp: (at) => countOf(at, 0),
    fp: (at) => countOf(at, 1),
    fn: (at) => countOf(at, 2),
    tn: (at) => countOf(at, 3),
  };

  return { confusionAt, figures, netBenefit };
})();
