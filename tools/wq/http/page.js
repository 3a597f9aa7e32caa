/* SPDX-License-Identifier: MIT */
/* page.js: how does the live page get its numbers, and how does it show them? A
 * part of page.html. */
"use strict";

/* ---- small functions --------------------------------------------------- */

const $ = (id) => document.getElementById(id);

/* Writing the same text again would cost a layout and lose a selection. */
function put(element, text) {
    if (element.textContent !== text)
        element.textContent = text;
}

function svg(name, attributes, text) {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const a in attributes)
        e.setAttribute(a, attributes[a]);
    if (text !== undefined)
        e.textContent = text;
    return e;
}

const commas = (n) => String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

/* At most seven characters: 999,999, then 1.23M, 45.6G. */
function number(n) {
    if (!Number.isFinite(n))
        return "–";
    const big = [[1e12, "T"], [1e9, "G"], [1e6, "M"]]
        .find(([from]) => n >= from * .9999995);
    if (big)
        return (n / big[0]).toPrecision(3) + big[1];
    if (Number.isInteger(n))
        return commas(n);
    return n >= 100 ? commas(Math.round(n)) : n.toPrecision(n < 1 ? 2 : 3);
}

/* For an axis: 15,000 is 15k. */
const brief = (n) => n >= 1e4 && n < 1e6 ? Number((n / 1e3).toPrecision(3)) + "k" :
    n >= 1e6 ? number(n).replace(/\.?0+(?=[A-Z])/, "") : String(Number(n.toPrecision(3)));

/* A duration: 850ms, 4.2s, 3m 07s, 2h 05m. */
function span(s) {
    const two = (n) => String(n).padStart(2, "0");
    if (!Number.isFinite(s))
        return "–";
    if (s > 0 && s < 0.9995e-3)
        return Number((s * 1e6).toPrecision(3)) + "µs";
    if (s < 0.9995)
        return Math.round(s * 1e3) + "ms";
    if (s < 59.5)
        return s.toFixed(s < 9.95 ? 1 : 0) + "s";
    const t = Math.round(s);
    if (t < 3600)
        return Math.floor(t / 60) + "m " + two(t % 60) + "s";
    if (t < 86400)
        return Math.floor(t / 3600) + "h " + two(Math.floor(t % 3600 / 60)) + "m";
    return Math.floor(t / 86400) + "d " + two(Math.floor(t % 86400 / 3600)) + "h";
}

/* Invisible characters, and those that reverse text, are shown as \u202e. */
function visible(key) {
    return key.replace(
        /[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
        (c) => ({"\n": "\\n", "\t": "\\t", "\r": "\\r"})[c] ||
            "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

/* ---- the text of /metrics ---------------------------------------------- */

/* The labels and the value of each "name{labels} value", by name. */
function parse(text) {
    const found = new Map();
    for (const line of text.split("\n")) {
        const m = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
        if (!m)
            continue;
        if (!found.has(m[1]))
            found.set(m[1], []);
        found.get(m[1]).push({
            labels: m[2] || "",
            value: m[3] === "+Inf" ? Infinity : Number(m[3])
        });
    }
    return found;
}

function total(metrics, name) {
    const all = metrics.get(name);
    return all ? all.reduce((sum, sample) => sum + sample.value, 0) : NaN;
}

/* ---- charts ------------------------------------------------------------ */

const edge = {right: 10, top: 8, bottom: 20};

/* The next round number that is not less; its half is round, too. */
function ceiling(n) {
    if (n <= 1)
        return 1;
    const power = 10 ** Math.floor(Math.log10(n));
    return (n < 10 ? [1, 2, 4, 6, 8, 10] : [1, 2, 3, 4, 5, 6, 8, 10]).map((m) => m * power).find((m) => m >= n);
}

/* The axes. The labels of the y-axis get the room that the longest needs. */
function frame(box, top, label) {
    const width = Math.max(box.clientWidth, 120);
    const height = box.clientHeight;
    const picture = svg("svg", {width, height, "aria-hidden": "true"});
    const parts = top > 1 ? [0, 0.5, 1] : [0, 1];
    const left = 12 + 7 * Math.max(...parts.map((p) => brief(top * p).length));
    for (const part of parts) {
        const y = edge.top + (height - edge.top - edge.bottom) * (1 - part);
        picture.append(
            svg("line", {class: "grid", x1: left, x2: width - edge.right,
                         y1: y, y2: y}),
            svg("text", {class: "y", x: left - 6, y: y + 4,
                         "text-anchor": "end"}, brief(top * part)));
    }
    box.setAttribute("aria-label", label);
    return {picture, width, height, left,
            w: width - left - edge.right,
            h: height - edge.top - edge.bottom};
}

function addCard(parent, id, title) {
    const card = $("card").content.firstElementChild.cloneNode(true);
    const ids = {"h2": "-title", ".legend": "-legend", ".plot": "", ".read": "-read"};
    for (const part in ids)
        card.querySelector(part).id = id + ids[part];
    card.setAttribute("aria-labelledby", id + "-title");
    card.querySelector("h2").textContent = title;
    $(parent).append(card);
}

/* A chart with lines over time. `series`: [{name, of(sample, before)}]. The
 * arrow keys and the mouse move a cursor; its values are shown below. */
function timeChart(id, title, series) {
    addCard("times", id, title);
    const box = $(id), read = $(id + "-read"), legend = $(id + "-legend");
    let points = [], at = null, end = 0, seconds = 300, left = 0;

    series.forEach((s) => {
        const item = document.createElement("span");
        const key = svg("svg", {width: 22, height: 8, "aria-hidden": "true"});
        key.append(svg("line", {class: "line " + s.name, x1: 0, x2: 22,
                                y1: 4, y2: 4}));
        item.append(key, s.name);
        legend.append(item);
    });

    const say = (p) => series.map((s, i) => s.name + " " + number(p.values[i]))
        .join(", ");

    function draw() {
        const shown = points.filter((p) => p.t >= end - seconds);
        const top = ceiling(Math.max(0, ...shown.flatMap((p) => p.values)));
        const last = shown[shown.length - 1];
        const f = frame(box, top, $(id + "-title").textContent + ". " +
                        (last ? "Now: " + say(last) : "Nothing yet") +
                        ". Arrow keys read earlier moments.");
        left = f.left;
        const x = (t) => left + f.w * (1 - (end - t) / seconds);
        const y = (v) => edge.top + f.h * (1 - v / top);
        series.forEach((s, i) => f.picture.append(svg("polyline", {
            class: "line " + s.name,
            points: shown.map((p) => x(p.t).toFixed(1) + "," +
                              y(p.values[i]).toFixed(1)).join(" ")
        })));
        for (const part of [0, 0.5, 1])
            f.picture.append(svg("text", {
                x: left + f.w * part, y: f.height - 4,
                "text-anchor": ["start", "middle", "end"][part * 2]
            }, part === 1 ? "now" : "−" + span(seconds * (1 - part))));
        const p = at === null ? null : shown.find((q) => q.t === at);
        if (p)
            f.picture.append(svg("line", {class: "cursor", x1: x(p.t),
                x2: x(p.t), y1: edge.top, y2: edge.top + f.h}));
        put(read, p ? span(end - p.t) + " ago: " + say(p) : "");
        box.replaceChildren(f.picture);
    }

    function move(by) {
        const shown = points.filter((p) => p.t >= end - seconds);
        if (!shown.length)
            return;
        const i = at === null ? shown.length - (by > 0 ? 1 : 0) :
            shown.findIndex((p) => p.t === at);
        at = shown[Math.min(Math.max(i + by, 0), shown.length - 1)].t;
        draw();
    }

    box.addEventListener("keydown", (e) => {
        const by = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10,
                    Home: -1e9, End: 1e9}[e.key];
        if (by) {
            e.preventDefault();
            move(by);
        }
    });
    box.addEventListener("pointermove", (e) => {
        const r = box.getBoundingClientRect();
        const part = (e.clientX - r.left - left) /
            (r.width - left - edge.right);
        const t = end - seconds * (1 - part);
        const shown = points.filter((p) => p.t >= end - seconds);
        if (shown.length) {
            at = shown.reduce((a, b) =>
                Math.abs(b.t - t) < Math.abs(a.t - t) ? b : a).t;
            draw();
        }
    });
    for (const event of ["pointerleave", "blur"])
        box.addEventListener(event, () => { at = null; draw(); });
    new ResizeObserver(draw).observe(box);

    return {
        show(history, now, wide) {
            end = now;
            seconds = wide;
            points = history.map((s, i) => ({
                t: s.t, values: series.map((one) => one.of(s, history[i - 1]))
            }));
            draw();
        }
    };
}

/* Bounds of buckets are 1, 2, 5, 10, ... microseconds: number i, and back. */
const boundAt = (i) => Number(
    [1, 2, 5][(i % 3 + 3) % 3] + "e" + (Math.floor(i / 3) - 6));

function boundIndex(bound) {
    const power = Math.floor(Math.log10(bound) + 1e-9);
    const first = Math.round(bound / 10 ** power);
    return 3 * (power + 6) + (first >= 5 ? 2 : first >= 2 ? 1 : 0);
}

/* How long things took: `field` of the event. */
function histogramChart(id, title, field) {
    addCard("histograms", id, title);
    const box = $(id), read = $(id + "-read");
    let all = {count: 0};

    /* All buckets in between, and at least six: {upTo, n}. */
    function columns() {
        const list = all.buckets || [];
        const first = list.length ? boundIndex(list[0][0]) : 9;
        const more = Math.max(0, 6 - list.length);
        const from = Math.max(0, first - Math.floor(more / 2));
        return Array.from({length: list.length + more}, (_, i) => ({
            upTo: boundAt(from + i), n: (list[from + i - first] || [0, 0])[1]
        }));
    }

    const say = () => !all.count ? "nothing yet" : commas(all.count) +
        " in all, mean " + span(all.sum / all.count) + "; half ≤ " +
        span(all.p50) + ", 90% ≤ " + span(all.p90) + ", 99% ≤ " +
        span(all.p99) + ", longest " + span(all.max);

    function draw() {
        const shown = columns();
        const top = ceiling(Math.max(0, ...shown.map((b) => b.n)));
        const f = frame(box, top,
                        $(id + "-title").textContent + ". " + say() + ".");
        const step = f.w / shown.length;
        const every = Math.ceil(46 / step); /* columns for one label */
        shown.forEach((b, i) => {
            const h = f.h * b.n / top, x = f.left + step * i;
            const column = svg("rect", {class: "column", x: x + step * .06,
                width: step * .88, y: edge.top + f.h - h, height: h,
                "data-le": b.upTo, "data-n": b.n});
            column.append(svg("title", {}, "up to " + span(b.upTo) + ": " +
                              commas(b.n)));
            f.picture.append(column);
            if (i % every === every - 1 && i + 1 < shown.length)
                f.picture.append(svg("text", {x: x + step, y: f.height - 4,
                    "text-anchor": "middle"}, span(b.upTo)));
        });
        box.replaceChildren(f.picture);
        put(read, say());
    }
    new ResizeObserver(draw).observe(box);

    return {
        show(now) {
            all = now[field];
            draw();
        }
    };
}

/* The rate per second between two samples. */
const rateOf = (field) => (s, before) => before && s.t > before.t ?
    Math.max(0, (s[field] - before[field]) / (s.t - before.t)) : 0;

const charts = [
    timeChart("depth", "Keys over time",
              ["ready", "running", "waiting", "retrying"].map(
                  (name) => ({name, of: (s) => s[name]}))),
    timeChart("flow", "Runs per second",
              [{name: "runs", of: rateOf("runs")},
               {name: "failed", of: rateOf("bad")}])
];
const histograms = [
    histogramChart("queued", "Time in the queue", "queued"),
    histogramChart("worked", "Duration of runs", "worked")
];

/* ---- the tables -------------------------------------------------------- */

function reason(f) {
    return f.timed_out ? "timed out" :
        f.signal !== undefined ? "killed by SIG" + f.signal : "exit " + f.exit;
}

const lineOf = (f) => f.line === undefined ? "" : visible(f.line);

/* A long key has only its ends. */
const nameOf = (k) => visible(k.key) + (k.cut ? "…" + visible(k.tail) : "");

/* [class, heading, label in a narrow window, text]; the key comes first. */
const keyColumns = [
    ["key", "key", "", nameOf],
    ["", "state", "", (k) => k.state + (k.again ? ", runs again" : "")],
    ["number", "attempt", "attempt", (k) =>
        k.attempt > 1 || k.state === "running" ? commas(k.attempt) : ""],
    ["number", "since", "since", (k) =>
        k.since === undefined ? "" : span(k.since)],
    ["number", "due in", "due in", (k) => k.due === undefined ? "" : span(k.due)],
    ["number", "priority", "priority", (k) =>
        k.priority ? String(k.priority) : ""],
    ["number", "slot", "slot", (k) => k.slot === undefined ? "" : String(k.slot)],
    ["line", "last failure", "last failure:", (k) =>
        !k.failure ? "" : reason(k.failure) +
        (k.failure.line === undefined ? "" : ": " + lineOf(k.failure))]
];

const failedColumns = [
    ["key", "key", "", nameOf],
    ["why", "reason", "", reason],
    ["number", "attempt", "attempt", (f) => commas(f.attempt)],
    ["number", "when", "", (f) => span(Math.max(0, elapsed - f.at)) + " ago"],
    ["line", "last line on stderr", "", lineOf]
];

function element(name, role) {
    const e = document.createElement(name);
    e.setAttribute("role", role);
    return e;
}

/* Fills in the head of a table, and returns its body. */
function addHead(table, columns) {
    const head = element("thead", "rowgroup"), body = element("tbody", "rowgroup");
    head.append(element("tr", "row"));
    for (const [kind, heading] of columns) {
        const cell = element("th", "columnheader");
        cell.scope = "col";
        cell.className = kind === "why" ? "" : kind;
        cell.textContent = heading;
        head.firstChild.append(cell);
    }
    table.append(head, body);
    return body;
}

const keyRows = addHead($("keys-table"), keyColumns);
const failedRows = addHead($("failed-table"), failedColumns);
keyRows.id = "rows";
failedRows.id = "failed-rows";

function row(columns) {
    const tr = element("tr", "row");
    columns.forEach(([kind, , label], i) => {
        const cell = i ? element("td", "cell") : element("th", "rowheader");
        if (!i) {
            cell.scope = "row";
            cell.append(document.createElement("div"));
            cell.firstChild.className = "cut";
            cell.firstChild.append(document.createElement("span"),
                                   document.createElement("span"));
        }
        cell.className = kind;
        if (label)
            cell.dataset.label = label;
        tr.append(cell);
    });
    return tr;
}

/* The end of a long key is in a part of its own, which is never cut. */
function putKey(cell, text, bytes) {
    const title = text + (bytes ? " (" + commas(bytes) + " bytes)" : "");
    if (cell.title === title)
        return;
    const letters = [...text];
    const tail = letters.length > 24 ? letters.splice(-12).join("") : "";
    const [head, end] = cell.firstChild.children;
    put(head, letters.join(""));
    put(end, tail);
    cell.title = title;
}

function fill(body, columns, list) {
    while (body.rows.length > list.length)
        body.deleteRow(-1);
    while (body.rows.length < list.length)
        body.append(row(columns));
    list.forEach((item, i) => columns.forEach(([kind, , , text], c) => {
        const cell = body.rows[i].cells[c];
        if (!c) {
            putKey(cell, text(item), item.bytes);
            return;
        }
        put(cell, text(item));
        if (kind === "line" && cell.title !== cell.textContent)
            cell.title = cell.textContent;
    }));
}

function showKeys(keys) {
    fill(keyRows, keyColumns, keys.rows);
    keys.rows.forEach((k, i) => {
        keyRows.rows[i].cells[1].className = "state-" + k.state;
    });
    $("keys-table").className =
        keys.rows.some((k) => k.failure) ? "" : "no-failure";
    const n = keys.rows.length;
    let note = n + (n === 1 ? " key" : " keys");
    if (keys.matched > n)
        note = "The first " + commas(n) + " of " + commas(keys.matched) +
            " keys are shown; search to narrow them down";
    else if (!n)
        note = "No key" + ($("search").value ? " matches" : "");
    put($("note"), note + ".");
    put($("age"), keys.age < 2 ? "" : "Keys that do not run are as of " +
        span(keys.age) + " ago: there are too many to look more often.");
}

const keepFailed = 100; /* as many as the server keeps */
let failed = [];        /* the latest first */

function showFailed(now) {
    if (now.failed_from === 1)
        failed = [];
    failed = [...now.failed.slice().reverse(), ...failed].slice(0, keepFailed);
    $("failed").hidden = !failed.length;
    fill(failedRows, failedColumns, failed);
    const all = failed.length ? failed[0].number : 0;
    put($("failed-note"), (all > failed.length ? "The last " + failed.length +
        " of " + commas(all) + " are shown; --joblog records all. " : "") +
        (now.counts.dead === undefined ? "" :
         "These failed here; the filter “dead” has those of all workers."));
}

/* ---- events ------------------------------------------------------------ */

const keepSeconds = 900;
let history = [], stream = null, paused = false, over = false, state = "";
let elapsed = 0;

/* The chosen time span, but not much more than there is. */
function drawTimes() {
    const wide = Math.min(Number($("span").value), Math.max(30, elapsed));
    charts.forEach((chart) => chart.show(history, elapsed, wide));
}
$("span").addEventListener("change", drawTimes);

function phase(name, text) {
    $("phase").dataset.phase = name;
    put($("phase"), text || name);
}

function putNumber(tile, value) {
    tile.dataset.value = value;
    put(tile, tile.dataset.unit ? span(value) : number(value));
    tile.title = value >= 1e6 ? commas(value) : "";
}

function showTiles(now, metrics) {
    for (const tile of document.querySelectorAll("[data-metric]"))
        putNumber(tile, total(metrics, tile.dataset.metric));
    for (const tile of document.querySelectorAll("dd[data-count]"))
        putNumber(tile, now.counts[tile.dataset.count]);
    const shared = now.counts.dead !== undefined;
    document.querySelector('[data-count="dead"]').parentElement.hidden = !shared;
    $("filters").lastChild.hidden = !shared;
}

/* "finished" is said only if no key is left; see state.h. */
function showPhase(now) {
    const left = now.counts.left;
    over = now.phase === "finished" || now.phase === "stopped";
    phase(now.phase, now.phase !== "stopped" || !left ? now.phase :
        "stopped, " + commas(left) + (left === 1 ? " key left" : " keys left"));
    document.title = "wq " + now.queue + " – " + now.phase +
        (now.counts.failed ? ", " + commas(now.counts.failed) + " failed" : "");
}

/* Only queues in a server have one. */
function showServer(server) {
    const pill = $("server");
    pill.hidden = !server;
    if (!server)
        return;
    put(pill, server.name + (server.reachable ? "" : server.lease_left > 0 ?
        " does not answer: holds are certain for " + span(server.lease_left) :
        " does not answer: holds are lost"));
    pill.title = [server.version, server.role, server.reconnects + " reconnects"]
        .filter(Boolean).join(", ");
    pill.dataset.phase = server.reachable ? "finished" : "lost";
}

function show(event) {
    const now = JSON.parse(event.data);
    const metrics = parse(now.metrics);
    if (now.history_from === 0)
        history = [];
    for (const [t, ready, running, waiting, retrying, runs, bad] of now.history)
        history.push({t, ready, running, waiting, retrying, runs, bad});
    while (history.length && history[0].t < now.elapsed - keepSeconds)
        history.shift();

    elapsed = now.elapsed;
    showPhase(now);
    put($("queue"), now.queue);
    put($("command"), visible(now.command));
    $("command").title = visible(now.command);
    put($("elapsed"), span(now.elapsed));
    showServer(now.server);
    showTiles(now, metrics);
    put($("rate"), number(now.rate));
    put($("eta"), span(now.eta));
    $("eta").parentElement.hidden = now.eta === undefined;
    drawTimes();
    histograms.forEach((chart) => chart.show(now));
    showFailed(now);
    showKeys(now.keys);
    document.body.dataset.events = Number(document.body.dataset.events || 0) + 1;
    document.body.dataset.query = now.keys.query;
    document.body.dataset.show = now.keys.show;
    if (over)
        close();
}

function close() {
    if (stream)
        stream.close();
    stream = null;
}

/* One stream at a time, and none while the tab is hidden: a browser has six
 * connections to a server for all its tabs. */
function open() {
    close();
    if (paused || over || document.hidden)
        return;
    stream = new EventSource("/events?" + new URLSearchParams(
        {q: $("search").value, show: state}));
    stream.addEventListener("state", show);
    /* The browser reconnects every few seconds. */
    stream.onerror = () => phase("lost", "connection lost");
}

/* ---- controls ---------------------------------------------------------- */

const filters = ["all", "running", "retrying", "waiting", "ready", "dead"];

function choose(name) {
    state = name === "all" ? "" : name;
    for (const b of $("filters").children)
        b.setAttribute("aria-pressed", String(b.textContent === name));
    open();
}

filters.forEach((name, i) => {
    const b = document.createElement("button");
    b.type = "button";
    b.textContent = name;
    b.setAttribute("aria-pressed", String(i === 0));
    b.setAttribute("aria-keyshortcuts", String(i + 1));
    b.addEventListener("click", () => choose(name));
    b.hidden = name === "dead"; /* until the queue is known to be shared */
    $("filters").append(b);
});

let typing = 0;
$("search").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(open, 150);
});

function pause() {
    paused = !paused;
    $("pause").setAttribute("aria-pressed", String(paused));
    if (paused && !over)
        phase("paused");
    open();
}
$("pause").addEventListener("click", pause);

const themes = ["system", "light", "dark"];
const night = matchMedia("(prefers-color-scheme: dark)");
let theme = "system";
try { /* the browser may forbid it */
    theme = localStorage.getItem("wq-theme") || theme;
} catch (e) { /* then the theme is not stored */ }

function paint() {
    const dark = theme === "system" ? night.matches : theme === "dark";
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    put($("theme"), "Theme: " + theme);
}

function nextTheme() {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try {
        localStorage.setItem("wq-theme", theme);
    } catch (e) { /* as above */ }
    paint();
}
$("theme").addEventListener("click", nextTheme);
night.addEventListener("change", paint);

document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.altKey || e.metaKey)
        return;
    if (e.target === $("search")) {
        if (e.key === "Escape") {
            $("search").value = "";
            $("search").blur();
            open();
        }
        return;
    }
    if (e.target.tagName === "SELECT")
        return;
    if (e.key === "/") {
        e.preventDefault();
        $("search").focus();
        $("search").select();
    } else if (e.key === "p")
        pause();
    else if (e.key === "t")
        nextTheme();
    else if (filters[Number(e.key) - 1] &&
             !$("filters").children[Number(e.key) - 1].hidden)
        choose(filters[Number(e.key) - 1]);
});
document.addEventListener("visibilitychange", open);

paint();
open();
