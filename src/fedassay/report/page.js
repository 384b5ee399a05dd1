// The page's controls: a threshold that every figure follows, and the decision curve's range.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { confusionAt, figures, netBenefit } = fedassayMetrics;
  const slider = document.getElementById("slider");
  const number = document.getElementById("number");
  const COUNTS = ["tp", "fp", "fn", "tn"];
  const SVG = "http://www.w3.org/2000/svg";

  document.documentElement.classList.add("on");

  // --- words -------------------------------------------------------------------------------
  function digitsOf(low, high) {
    const half = (high - low) / 2;
    if (!(half > 0) || !Number.isFinite(half)) return 3;
    return Math.min(Math.max(Math.ceil(-Math.log10(half)), 3), 5);
  }

  function text(name, value, digits) {
    if (COUNTS.includes(name)) {
      return (value < 0 ? "-" : "") + Math.abs(value).toFixed(0).replace(/\B(?=(\d{3})+$)/g, ",");
    }
    return name === "flagged" ? value.toFixed(1) : value.toFixed(digits);
  }

  function words(name, estimate) {
    if (estimate.value === null) return ["–", estimate.kind, estimate.why];
    const digits = digitsOf(estimate.low, estimate.high);
    const ends = [estimate.low, estimate.high].map((end) => text(name, end, digits));
    return [text(name, estimate.value, digits), `${ends[0]} to ${ends[1]}`, ""];
  }

  const shown = (threshold) => String(Number(threshold.toPrecision(6)));

  // --- places ------------------------------------------------------------------------------
  function frameOf(svg) {
    const [x0, x1, y0, y1, left, right, bottom, top] = svg.dataset.frame.split(" ").map(Number);
    const clip = (value, a, b) => Math.min(Math.max(value, a), b);
    return {
      x: (value) => left + ((value - x0) / (x1 - x0)) * (right - left),
      y: (value) => bottom + ((clip(value, y0, y1) - y0) / (y1 - y0)) * (top - bottom),
      holds: (value) => value >= x0 && value <= x1,
      bottom, top, left, right, y0, y1,
    };
  }

  function movePoint(id, x, y) {
    const svg = document.getElementById(id);
    if (!svg) return;
    const frame = frameOf(svg);
    const point = svg.querySelector("circle.point");
    const isThere = x !== null && y !== null && frame.holds(x);
    point.setAttribute("visibility", isThere ? "visible" : "hidden");
    if (!isThere) return;
    point.setAttribute("cx", frame.x(x));
    point.setAttribute("cy", frame.y(y));
  }

  function moveCut(id, x) {
    const svg = document.getElementById(id);
    if (!svg) return;
    const frame = frameOf(svg);
    const line = svg.querySelector("line.cut");
    line.setAttribute("visibility", frame.holds(x) ? "visible" : "hidden");
    line.setAttribute("x1", frame.x(x));
    line.setAttribute("x2", frame.x(x));
    line.setAttribute("y1", frame.bottom);
    line.setAttribute("y2", frame.top);
  }

  // --- the threshold -----------------------------------------------------------------------
  function show(index, { say = true } = {}) {
    const at = confusionAt(data, index);
    const found = {};
    for (const [name, figure] of Object.entries(figures)) {
      found[name] = figure(at);
      const [value, interval, why] = words(name, found[name]);
      const place = document.querySelector(`[data-figure="${name}"]`);
      const cells = COUNTS.includes(name) ? place.children : [place.cells[1], place.cells[2]];
      cells[0].textContent = value;
      cells[1].textContent = interval;
      place.title = why;
    }
    const value = (name) => found[name].value;
    const fpr = value("specificity") === null ? null : 1 - value("specificity");
    movePoint("roc", fpr, value("recall"));
    movePoint("pr", value("recall"), value("precision"));
    movePoint("decision", at.threshold, value("net_benefit"));
    moveCut("calibration-curve", at.threshold);
    moveCut("distribution", at.threshold);
    document.querySelectorAll(".at").forEach((place) => {
      place.textContent = shown(at.threshold);
    });
    slider.value = index;
    slider.setAttribute("aria-valuetext", shown(at.threshold));
    if (say) {
      const [recall, precision] = [words("recall", found.recall), words("precision", found.precision)];
      document.getElementById("said").textContent =
        `Threshold ${shown(at.threshold)}: recall ${recall[0]}, precision ${precision[0]}.`;
    }
    return at.threshold;
  }

  function nearest(wanted) {
    let best = 0;
    data.thresholds.forEach((threshold, index) => {
      if (Math.abs(threshold - wanted) < Math.abs(data.thresholds[best] - wanted)) best = index;
    });
    return best;
  }

  slider.addEventListener("input", () => {
    number.value = shown(show(Number(slider.value)));
  });
  number.addEventListener("change", () => {
    const wanted = number.valueAsNumber;
    if (Number.isNaN(wanted)) {
      number.value = shown(data.thresholds[Number(slider.value)]);
      return;
    }
    number.value = shown(show(nearest(wanted)));
  });

  // --- the decision curve's range ----------------------------------------------------------
  const [from, to] = ["range-from", "range-to"].map((id) => document.getElementById(id));
  const POINTS = 120;

  function ticks(low, high) {
    const room = (high - low) / 5;
    const unit = 10 ** Math.floor(Math.log10(room));
    const step = unit * [1, 2, 5, 10].find((size) => unit * size >= room - 1e-6 * unit);
    const marks = [];
    for (let i = Math.ceil(low / step - 1e-6); i <= Math.floor(high / step + 1e-6); i += 1) {
      marks.push(Number((i * step).toPrecision(12)));
    }
    return marks;
  }

  function node(name, attributes, content) {
    const made = document.createElementNS(SVG, name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    if (content !== undefined) made.textContent = content;
    return made;
  }

  function redraw() {
    const low = Math.min(Math.max(from.valueAsNumber, 0), 0.99);
    const high = Math.min(Math.max(to.valueAsNumber, 0), 0.99);
    if (!(high > low)) return;
    const inside = data.thresholds.map((t, i) => [t, i]).filter(([t]) => t >= low && t <= high);
    if (inside.length < 2) return;
    const every = Math.max(1, Math.floor(inside.length / POINTS));
    const points = inside
      .filter((_, i) => i % every === 0 || i === inside.length - 1)
      .map(([t, i]) => {
        const at = confusionAt(data, i);
        const [model, all, over] = ["model", "all", "over"].map((of) => netBenefit(at, of));
        return { t, model, all, over };
      })
      .filter(({ model }) => model.value !== null);
    if (points.length < 2) return;
    const svg = document.getElementById("decision");
    const best = Math.max(...points.map(({ model, all }) => Math.max(model.value, all.value)), 1e-3);
    const old = svg.dataset.frame.split(" ").slice(4);
    svg.dataset.frame = [points[0].t, points.at(-1).t, -0.25 * best, 1.1 * best, ...old].join(" ");
    const frame = frameOf(svg);
    const place = (t, y) => `${frame.x(t).toFixed(1)} ${frame.y(y).toFixed(1)}`;
    const path = (y) => `M${points.map((each) => place(each.t, y(each))).join("L")}`;
    svg.querySelector(".line").setAttribute("d", path(({ model }) => model.value));
    svg.querySelector(".all").setAttribute("d", path(({ all }) => all.value));
    svg.querySelector(".nobody").setAttribute("d", path(() => 0));
    const back = [...points].reverse().map(({ t, model }) => place(t, model.low)).join("L");
    svg.querySelector(".band").setAttribute("d", `${path(({ model }) => model.high)}L${back}Z`);
    const axes = svg.querySelector(".axes");
    const [xlabel, ylabel] = [...axes.querySelectorAll("text")].slice(-2);
    const marks = [];
    for (const t of ticks(points[0].t, points.at(-1).t)) {
      const x = frame.x(t);
      marks.push(node("line", { class: "grid", x1: x, x2: x, y1: frame.bottom, y2: frame.top }));
      marks.push(node("text", { x, y: frame.bottom + 16, "text-anchor": "middle" }, shown(t)));
    }
    for (const y of ticks(frame.y0, frame.y1)) {
      const [left, right, at] = [frame.left, frame.right, frame.y(y)];
      marks.push(node("line", { class: "grid", x1: left, x2: right, y1: at, y2: at }));
      marks.push(node("text", { x: left - 6, y: at + 4, "text-anchor": "end" }, shown(y)));
    }
    axes.replaceChildren(...marks, xlabel, ylabel);
    const better = points.filter(({ model, over }) => Math.min(model.low, over.low) > 0);
    document.getElementById("useful").textContent = better.length
      ? "In this range it is surely better than both simple ways (95 %, pointwise) at " +
        `${better.length} of ${points.length} thresholds, from ${shown(better[0].t)} to ` +
        `${shown(better.at(-1).t)}.`
      : "In this range it is nowhere surely better than acting on everybody or on nobody.";
    show(Number(slider.value), { say: false });
  }

  if (from) [from, to].forEach((field) => field.addEventListener("change", redraw));
  show(Number(slider.value), { say: false });
})();
