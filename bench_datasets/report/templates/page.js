"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const count = data.rows.key.length, runs = data.names.length;
  const level = new Map([...data.alphabet].map((c, k) => [c, k]));
  const slider = data.slider;

  // What a node is made of: text goes in as text, whatever it holds.
  function node(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key === "class") made.className = value;
      else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
    }
    for (const child of children) if (child !== null && child !== undefined) made.append(child);
    return made;
  }
  const SVG = "http://www.w3.org/2000/svg";
  function drawn(name, attributes, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }
  const signs = [...document.querySelectorAll(".legend .sign")];
  const sign = (run) => signs[run] ? signs[run].cloneNode(true) : "";
  const words = (name) => name.replace(/_/g, " ");

  // ---------------------------------------------------------------- exact sums, as Python's math.fsum
  function fsum(values) {
    const parts = [];
    for (let x of values) {
      let i = 0;
      for (let y of parts) {
        if (Math.abs(x) < Math.abs(y)) [x, y] = [y, x];
        const high = x + y, low = y - (high - x);
        if (low) parts[i++] = low;
        x = high;
      }
      parts.length = i;
      parts.push(x);
    }
    let n = parts.length, high = 0, low = 0;
    if (!n) return 0;
    high = parts[--n];
    while (n > 0) {
      const x = high, y = parts[--n];
      high = x + y;
      low = y - (high - x);
      if (low) break;
    }
    if (n > 0 && ((low < 0 && parts[n - 1] < 0) || (low > 0 && parts[n - 1] > 0))) {
      const y = low * 2, x = high + y;
      if (y === x - high) high = x;
    }
    return high;
  }

  // ---------------------------------------------------------------- numbers at a threshold of k hundredths
  const decoded = data.runs.map((run) => run.iou ? run.iou.map((text) => [...text].map((c) => level.get(c))) : null);
  const reached = (values, k) => { let n = 0; for (const v of values) if (v >= k) n += 1; return n; };
  const kinds = {
    // PBench: the mean F1 of each level, then the mean of the levels.
    f1: {
      row(run, i, k) {
        const true_ = slider.true[i], own = data.runs[run];
        if (!true_) return slider.left_out ? NaN : (own.raw[i] === 0 ? 1 : 0);
        return own.masks[i] > 0 ? (2 * reached(decoded[run][i], k)) / own.masks[i] : 0;
      },
      headline(run, k) {
        const values = data.groups.map(() => []);
        for (let i = 0; i < count; i++) {
          const value = this.row(run, i, k);
          if (!Number.isNaN(value)) values[data.rows.group[i][0]].push(value);
        }
        const means = values.filter((v) => v.length).map((v) => fsum(v) / v.length);
        return means.reduce((a, b) => a + b, 0) / means.length;
      },
    },
    // PBench's card: the share of rows whose unions reach the threshold.
    union: {
      row: (run, i, k) => (decoded[run][i][0] >= k ? 1 : 0),
      headline(run, k) {
        let hit = 0, n = 0;
        for (let i = 0; i < count; i++) {
          if (!slider.pooled.includes(data.rows.group[i][0])) continue;
          n += 1;
          hit += this.row(run, i, k);
        }
        return hit / n;
      },
    },
    // InstanceBench: the share of core expressions, and of sets whose core expressions all reach the threshold.
    share: {
      row(run, i, k) {
        const parts = decoded[run][i];
        return parts.length ? reached(parts, k) / parts.length : NaN;
      },
      repeats: (run) => data.runs[run].repeats,
      headline(run, k, all) {
        const means = this.repeats(run).map((repeat) => {
          let hit = 0, n = 0;
          repeat.forEach((text) => {
            const values = [...text].map((c) => level.get(c));
            const good = reached(values, k);
            if (all) { n += values.length ? 1 : 0; hit += values.length && good === values.length ? 1 : 0; }
            else { n += values.length; hit += good; }
          });
          return hit / n;
        });
        return means.reduce((a, b) => a + b, 0) / means.length;
      },
    },
    // PVSG: the share of relations that a triplet of the first K hits; or takes, where each is used once.
    recall: {
      first(run, k) {
        const own = data.runs[run], best = new Array(count).fill(Infinity), used = new Set();
        own.pairs.forEach(([relation, rank, triplet, overlap]) => {
          if (overlap < k) return;
          if (!slider.once) { best[relation] = Math.min(best[relation], rank); return; }
          if (used.has(triplet) || best[relation] < Infinity) return;
          used.add(triplet);
          best[relation] = rank;
        });
        return best;
      },
      memory: new Map(),
      at(run, k) {
        const name = run + "/" + k;
        if (!this.memory.has(name)) {
          if (this.memory.size > 400) this.memory.clear();
          this.memory.set(name, this.first(run, k));
        }
        return this.memory.get(name);
      },
      row(run, i, k) { return this.at(run, k)[i] < state.rank ? 1 : 0; },
      headline(run, k) { let hit = 0; for (const rank of this.at(run, k)) hit += rank < state.rank ? 1 : 0; return hit / count; },
    },
  };
  const way = slider ? kinds[slider.kind] : null;
  const shown = (value) => (Number.isNaN(value) || value === null || value === undefined ? "–" : (100 * value).toFixed(2));

  // ---------------------------------------------------------------- state
  const state = {
    run: 0, a: 0, b: Math.min(1, runs - 1), sort: "worst", kinds: 0, group: -1, query: "", limit: 24,
    layers: { image: true, truth: true, prediction: true, difference: false }, at: slider ? slider.start : 50,
    rank: slider && slider.rank || 20, open: -1,
  };
  let list = [];

  const folded = data.rows.caption.map((text, i) => (text + "\n" + data.rows.key[i]).toLowerCase());
  function distance(i) {
    const values = state.run < runs && decoded[state.run] ? decoded[state.run][i] : [];
    let best = Infinity;
    for (const v of values) best = Math.min(best, Math.abs(v + 0.5 - state.at));
    return best;
  }
  const score = (run, i) => data.runs[run].score[i];
  const change = (i) => (score(state.a, i) < 0 || score(state.b, i) < 0 ? 0 : score(state.b, i) - score(state.a, i));
  const orders = {
    worst: ["worst first", (i) => { const s = score(state.run, i); return s < 0 ? 2 : s; }],
    near: ["nearest to the threshold", distance],
    change: ["largest change between two runs", (i) => -Math.abs(change(i))],
    best: ["best first", (i) => -score(state.run, i)],
    key: ["by key", () => 0],
  };
  if (runs < 2) delete orders.change;
  if (!slider || slider.kind === "recall") delete orders.near;

  function select() {
    const query = state.query.trim().toLowerCase(), bits = data.runs[state.run].kinds;
    list = [];
    for (let i = 0; i < count; i++) {
      if (state.kinds && !(bits[i] & state.kinds)) continue;
      if (state.group >= 0 && !data.rows.group[i].includes(state.group)) continue;
      if (query && !folded[i].includes(query)) continue;
      list.push(i);
    }
    const rank = orders[state.sort][1], value = new Map(list.map((i) => [i, rank(i)]));
    const plain = (i) => (data.pictures[i] ? 0 : 1);
    list.sort((i, j) => value.get(i) - value.get(j) || plain(i) - plain(j) || i - j);
  }

  // ---------------------------------------------------------------- pictures
  const address = (name) => data.images[name];
  function stage(panel, run, caption, only) {
    const made = node("div", { class: "stage" });
    made.style.aspectRatio = panel.size[1] + " / " + panel.size[0];
    const says = (what) => what + (caption ? ": " + caption : "");
    const image = (name, kind, alt) => made.append(node("img", {
      src: address(name), alt, class: kind, decoding: "async", loading: address(name).startsWith("data:") ? null : "lazy",
    }));
    if (panel.base && state.layers.image) image(panel.base, "base", says("image"));
    const own = panel.runs[run];
    if (only === "truth" || (!only && state.layers.truth && !state.layers.difference)) image(panel.truth, "truth", says("ground truth"));
    if (own && (only === "prediction" || (!only && state.layers.prediction && !state.layers.difference))) {
      image(own[0], "prediction", says("prediction of " + data.names[run]));
    }
    if (own && (only === "difference" || (!only && state.layers.difference))) {
      image(own[1], "difference", says("ground truth and prediction of " + data.names[run]));
    }
    if (made.children.length < 2 && panel.base) made.classList.add("pure");
    return made;
  }
  function nothing() {
    return node("div", { class: "stage none" }, "no picture of this " + data.unit + " in this page");
  }
  function told(i, run) {
    const bits = data.runs[run].kinds[i];
    return data.kinds.filter((_, k) => bits & (1 << k)).map(([name]) => node("span", { class: "tag" }, words(name)));
  }
  // Of a film the middle frame stands for all; of a set the first expression does.
  const cover = (entry) => (data.benchmark === "pvsg" ? Math.floor((entry.panels.length - 1) / 2) : 0);
  function card(i) {
    const entry = data.pictures[i], caption = data.rows.caption[i];
    const both = state.sort === "change" ? [state.a, state.b] : [state.run];
    const panes = both.map((run) => node("div", {},
      entry ? stage(entry.panels[cover(entry)], run, caption) : nothing(),
      both.length > 1 ? node("span", { class: "under" }, sign(run), data.names[run] + " " + marks(run, i)) : null));
    const rated = both.length > 1
      ? node("span", {}, "change ", node("b", {}, (100 * change(i)).toFixed(1)))
      : node("span", {}, "score ", node("b", {}, marks(state.run, i)));
    const made = node("button", { type: "button", class: "card", "data-row": i, onclick: () => open(i) },
      node("div", { class: both.length > 1 ? "twos" : "" }, ...panes),
      node("div", { class: "say" },
        node("p", { class: "caption", dir: "auto" }, caption || data.rows.key[i]),
        node("div", { class: "meta" }, rated, node("span", {}, data.rows.key[i]), ...told(i, both[both.length - 1]))));
    return node("li", {}, made);
  }
  const marks = (run, i) => (score(run, i) < 0 ? "–" : (100 * score(run, i)).toFixed(1));

  function show(more) {
    const cards = $("cards"), from = more ? cards.children.length : 0;
    if (!more) { select(); cards.replaceChildren(); }
    for (const i of list.slice(from, state.limit)) cards.append(card(i));
    $("more").hidden = list.length <= state.limit;
    const pictured = list.filter((i) => data.pictures[i]).length;
    $("status").textContent = list.length.toLocaleString("en") + " of " + count.toLocaleString("en") + " " + data.unit + "s"
      + (pictured < list.length ? ", " + pictured.toLocaleString("en") + " with pictures" : "");
    const chips = [];
    const chip = (text, off) => chips.push(node("button", { type: "button", class: "chip", title: "take off", onclick: off }, text + " ✕"));
    data.kinds.forEach(([name], k) => { if (state.kinds & (1 << k)) chip(words(name), () => choose({ kinds: state.kinds & ~(1 << k) })); });
    if (state.group >= 0) chip(words(data.groups[state.group]), () => choose({ group: -1 }));
    $("chips").replaceChildren(...chips);
    press();
  }
  function press() {
    const pressed = (element, on) => element.setAttribute("aria-pressed", on ? "true" : "false");
    document.querySelectorAll("button.kind").forEach((b) => pressed(b, state.kinds & (1 << Number(b.dataset.kind))));
    document.querySelectorAll("button.group").forEach((b) => pressed(b, state.group === Number(b.dataset.group)));
    document.querySelectorAll("#layers button").forEach((b) => pressed(b, state.layers[b.dataset.layer]));
    document.querySelectorAll("#runs button, #error-runs button").forEach((b) => pressed(b, state.run === Number(b.dataset.run)));
    document.querySelectorAll("[data-errors]").forEach((t) => { t.hidden = Number(t.dataset.errors) !== state.run; });
    $("group").value = String(state.group);
    $("sort").value = state.sort;
  }
  function choose(change) {
    Object.assign(state, change, { limit: 24 });
    show(false);
    if (state.open >= 0) open(state.open);
  }
  function layer(name) {
    const on = !state.layers[name];
    state.layers[name] = on;
    if (name === "difference" && on) { state.layers.truth = state.layers.prediction = false; }
    if ((name === "truth" || name === "prediction") && on) state.layers.difference = false;
    choose({ limit: state.limit });
  }

  // ---------------------------------------------------------------- one row, large
  function open(i) {
    state.open = i;
    const entry = data.pictures[i], body = $("big-body"), caption = data.rows.caption[i];
    $("big-caption").textContent = caption || data.rows.key[i];
    $("big-at").textContent = data.rows.key[i] + " · " + (list.indexOf(i) + 1) + " of " + list.length;
    body.replaceChildren();
    if (!entry) body.append(nothing());
    const one = runs === 1;
    (entry ? entry.panels : []).forEach((panel) => {
      if (panel.caption) body.append(node("h3", { dir: "auto" }, panel.caption));
      const sheet = node("div", { class: "sheet" }), many = one ? 3 : runs + 1;
      sheet.style.setProperty("--across", many === 4 ? 2 : Math.min(many, 3));
      const add = (picture, title, facts, run) => sheet.append(node("figure", {}, picture,
        node("figcaption", {}, run === null ? "" : sign(run), title, facts ? node("span", { class: "facts" }, facts) : null)));
      const says = panel.caption || caption;
      add(stage(panel, -1, says, "truth"), "ground truth", "", null);
      panel.runs.forEach(([, , facts], run) => {
        if (one) {
          add(stage(panel, run, says, "prediction"), "prediction", facts, null);
          add(stage(panel, run, says, "difference"), "difference", "", null);
        } else {
          add(stage(panel, run, says, state.layers.difference ? "difference" : state.layers.truth ? undefined : "prediction"), data.names[run], facts, run);
        }
      });
      body.append(sheet);
    });
    if (entry && entry.drawing !== undefined) {
      const box = node("div", { class: "drawn scroll", tabindex: "0" });
      box.append($("drawing-" + entry.drawing).content.cloneNode(true));
      body.append(box);
    }
    const marked = node("p", { class: "meta" });
    data.names.forEach((name, run) => marked.append(node("span", {}, sign(run), name + " ", node("b", {}, marks(run, i)), " "), ...told(i, run), " "));
    body.append(marked);
    if (!$("big").open) $("big").showModal();
  }
  function step(by) {
    const at = list.indexOf(state.open), next = list[at + by];
    if (next !== undefined) open(next);
  }
  $("big").addEventListener("close", () => {
    const back = document.querySelector('.card[data-row="' + state.open + '"]');
    state.open = -1;
    if (back) back.focus();
  });
  $("big").addEventListener("click", (event) => { if (event.target === $("big")) $("big").close(); });
  $("before").addEventListener("click", () => step(-1));
  $("after").addEventListener("click", () => step(1));

  // ---------------------------------------------------------------- the threshold
  let curves = null;
  function curve() {
    const narrow = window.matchMedia("(max-width: 720px)").matches, width = narrow ? 360 : 620;
    const box = { x: 40, y: 12, w: width - 60, h: narrow ? 170 : 220 };
    const x = (k) => box.x + box.w * (k - 5) / 95, y = (v) => box.y + box.h * (1 - v);
    const picture = drawn("svg", { viewBox: "0 0 " + width + " " + (box.h + 46), role: "img", "aria-label": slider.title + " at every threshold" });
    if (slider.band) {
      const [low, high] = slider.band;
      picture.append(drawn("rect", { class: "band", x: x(low) - 1, y: box.y, width: x(high) - x(low) + 2, height: box.h }));
    }
    for (const v of [0, 0.25, 0.5, 0.75, 1]) {
      picture.append(drawn("line", { class: "grid", x1: box.x, x2: box.x + box.w, y1: y(v), y2: y(v) }));
      const label = drawn("text", { class: "tick", x: box.x - 8, y: y(v) + 4, "text-anchor": "end" });
      label.textContent = 100 * v;
      picture.append(label);
    }
    for (const k of [5, 25, 50, 75, 100]) {
      const label = drawn("text", { class: "tick", x: x(k), y: box.y + box.h + 20, "text-anchor": "middle" });
      label.textContent = (k / 100).toFixed(2);
      picture.append(label);
    }
    data.names.forEach((_, run) => {
      const points = [];
      for (let k = 5; k <= 100; k++) { const v = way.headline(run, k); if (!Number.isNaN(v)) points.push(x(k).toFixed(1) + "," + y(v).toFixed(1)); }
      picture.append(drawn("polyline", { class: "line run" + run % 8, points: points.join(" ") }));
    });
    const here = drawn("line", { class: "zero", id: "here", y1: box.y, y2: box.y + box.h });
    picture.append(here);
    const dots = data.names.map((_, run) => drawn("circle", { class: "run" + run % 8, r: 5 }));
    picture.append(...dots);
    picture.addEventListener("pointerdown", (event) => {
      const area = picture.getBoundingClientRect();
      const at = ((event.clientX - area.left) * width / area.width - box.x) / box.w * 95 + 5;
      move(Math.round(Math.min(100, Math.max(5, at))));
    });
    curves = { here, dots, x, y };
    $("curve").replaceChildren(picture);
  }
  function move(k) {
    state.at = k;
    $("slider").value = String(k);
    $("slider-at").textContent = (k / 100).toFixed(2);
    $("slider").setAttribute("aria-valuetext", (k / 100).toFixed(2));
    const lines = [];
    data.names.forEach((name, run) => {
      const value = way.headline(run, k);
      const more = slider.all ? node("span", { class: "n" }, "all of a set: " + shown(way.headline(run, k, true))) : null;
      lines.push(node("li", { "data-value": String(value) }, sign(run), name + " ", node("b", {}, shown(value)), more));
      curves.here.setAttribute("x1", curves.x(k)); curves.here.setAttribute("x2", curves.x(k));
      curves.dots[run].setAttribute("cx", curves.x(k)); curves.dots[run].setAttribute("cy", curves.y(Number.isNaN(value) ? 0 : value));
    });
    $("recomputed").replaceChildren(...lines);
    if (state.sort === "near") show(false);
  }
  if (slider) {
    $("slider-words").textContent = slider.title + (slider.complete ? "" : " (of the parts that were scored)")
      + ", recomputed in this page from every row at the threshold you set. " + (slider.note || "");
    $("slider").addEventListener("input", () => move(Number($("slider").value)));
    if (slider.kind === "recall") {
      $("ranks").hidden = false;
      $("rank").value = String(state.rank);
      $("rank").addEventListener("input", () => {
        const wanted = Number($("rank").value);
        if (!(wanted >= 1)) return;
        state.rank = Math.floor(wanted);
        curve(); move(state.at);
      });
    }
    curve();
    move(state.at);
  }

  // ---------------------------------------------------------------- controls
  for (const id of ["runs", "error-runs"]) {
    data.names.forEach((name, run) => $(id).append(node("button", { type: "button", "data-run": run, title: "key " + (run + 1), onclick: () => pick(run) }, sign(run), name)));
  }
  function pick(run) {
    if (run >= runs) return;
    if (run !== state.run) { state.a = state.run; state.b = run; }
    choose({ run });
  }
  [["truth", "t"], ["prediction", "p"], ["difference", "d"], ["image", "i"]].forEach(([name, key]) =>
    $("layers").append(node("button", { type: "button", "data-layer": name, title: "key " + key, onclick: () => layer(name) }, name === "truth" ? "ground truth" : name)));
  Object.entries(orders).forEach(([name, [title]]) => $("sort").append(node("option", { value: name }, title)));
  $("group").append(node("option", { value: "-1" }, "all"));
  data.groups.forEach((name, k) => $("group").append(node("option", { value: k }, words(name))));
  $("sort").addEventListener("change", () => choose({ sort: $("sort").value }));
  $("group").addEventListener("change", () => choose({ group: Number($("group").value) }));
  $("find").addEventListener("input", () => choose({ query: $("find").value }));
  $("more").addEventListener("click", () => { state.limit += 24; show(true); });
  document.querySelectorAll("button.kind").forEach((b) => b.addEventListener("click", () => choose({ kinds: state.kinds ^ (1 << Number(b.dataset.kind)) })));
  document.querySelectorAll("button.group").forEach((b) => b.addEventListener("click", () => choose({ group: state.group === Number(b.dataset.group) ? -1 : Number(b.dataset.group) })));
  document.querySelectorAll("button.cell").forEach((b) => b.addEventListener("click", () => {
    choose({ kinds: 1 << Number(b.dataset.kind), group: Number(b.dataset.group) });
    $("gallery").scrollIntoView();
  }));
  const dark = () => document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
  $("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    $("theme").setAttribute("aria-pressed", String(dark()));
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const inside = event.target instanceof Element ? event.target : document.body;
    if (inside.matches("input, select, textarea")) {
      if (event.key === "Escape") inside.blur();
      return;
    }
    const key = event.key;
    const layers = { t: "truth", p: "prediction", d: "difference", i: "image" };
    if (layers[key]) layer(layers[key]);
    else if (/^[1-9]$/.test(key)) pick(Number(key) - 1);
    else if ((key === "[" || key === "]") && slider) move(Math.min(100, Math.max(5, state.at + (key === "]" ? 1 : -1))));
    else if (key === "/") { $("find").focus(); }
    else if (state.open >= 0 && key === "ArrowLeft") step(-1);
    else if (state.open >= 0 && key === "ArrowRight") step(1);
    else if (state.open < 0 && key.startsWith("Arrow") && inside.classList.contains("card")) walk(inside, key);
    else return;
    event.preventDefault();
  });
  function walk(from, key) {
    const cards = [...document.querySelectorAll(".card")], at = cards.indexOf(from);
    const top = cards[0].getBoundingClientRect().top;
    const across = Math.max(1, cards.filter((c) => Math.abs(c.getBoundingClientRect().top - top) < 4).length);
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across }[key] || 0;
    const next = cards[Math.min(cards.length - 1, Math.max(0, at + by))];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  }

  show(false);
  window.report = { state, choose, open, move, fsum, headline: (run, k, all) => way.headline(run, k, all), rows: () => list.slice() };
})();
