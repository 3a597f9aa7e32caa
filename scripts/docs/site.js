/* SPDX-License-Identifier: MIT */
/* site.js: how does the search work? search-index.js has every section of every
 * page; it is loaded when the search is used first, by a script element, so that
 * the site also works from a file. A result contains all words; words in a
 * heading count more than words in the text. */
"use strict";
(function () {
    const root = document.currentScript.dataset.root;
    const input = document.getElementById("search");
    const results = document.getElementById("results");
    const menu = document.getElementById("menu");
    let loading = null;
    let selected = -1;

    /* On a wide window the list of pages is always open. */
    const wide = window.matchMedia("(min-width: 801px)");
    const adjust = () => { menu.open = wide.matches; };
    wide.addEventListener("change", adjust);
    adjust();
    const here = menu.querySelector("[aria-current]");
    if (wide.matches && here)
        menu.parentNode.scrollTop = here.offsetTop - 200;

    function load() {
        loading = loading || new Promise((done, failed) => {
            const script = document.createElement("script");
            script.src = root + "/search-index.js";
            script.onload = () => done(window.wqIndex.map((entry) => ({
                url: root + "/" + entry[0] + "#" + entry[2],
                page: entry[1],
                heading: entry[3],
                text: entry[4],
                low: entry[3].toLowerCase(),
                all: (entry[1] + " " + entry[3] + " " + entry[4]).toLowerCase(),
            })));
            script.onerror = () => failed(new Error("no search-index.js"));
            document.head.append(script);
        });
        return loading;
    }

    function score(entry, words) {
        let sum = 0;
        for (const word of words) {
            if (!entry.all.includes(word))
                return 0;
            if (entry.low.split(/[^a-z0-9_-]+/).includes(word))
                sum += 20;
            else if (entry.low.includes(word))
                sum += 8;
            else
                sum += 1;
        }
        if (entry.low === words.join(" "))
            sum += 50;
        return sum;
    }

    /* The text around the first word, as nodes: nothing is read as HTML. */
    function snippet(entry, words) {
        const at = Math.max(0, entry.text.toLowerCase().indexOf(words[0]) - 40);
        const line = document.createElement("small");
        let rest = entry.text.slice(at, at + 140);
        const pattern = new RegExp("(" + words.map((word) =>
            word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|") + ")", "i");
        for (const part of rest.split(pattern)) {
            if (words.includes(part.toLowerCase())) {
                const mark = document.createElement("mark");
                mark.textContent = part;
                line.append(mark);
            } else {
                line.append(part);
            }
        }
        return line;
    }

    function show(found, words) {
        results.replaceChildren();
        selected = -1;
        for (const entry of found.slice(0, 12)) {
            const item = document.createElement("li");
            const link = document.createElement("a");
            const name = document.createElement("b");
            link.href = entry.url;
            name.textContent = entry.heading;
            link.append(name, entry.heading === entry.page ? "" :
                " – " + entry.page, snippet(entry, words));
            item.append(link);
            results.append(item);
        }
        if (found.length === 0) {
            const item = document.createElement("li");
            const text = document.createElement("p");
            text.textContent = "Nothing found.";
            item.append(text);
            results.append(item);
        }
        results.hidden = false;
    }

    async function search() {
        const words = input.value.toLowerCase().replace(/\(\)/g, "")
            .split(/\s+/).filter(Boolean);
        if (words.length === 0) {
            results.hidden = true;
            return;
        }
        const typed = input.value;
        const index = await load();
        if (typed !== input.value)
            return; /* a later call shows its own results */
        const found = index.map((entry) => [score(entry, words), entry])
            .filter((pair) => pair[0] > 0)
            .sort((a, b) => b[0] - a[0])
            .map((pair) => pair[1]);
        show(found, words);
    }

    function move(by) {
        const links = results.querySelectorAll("a");
        if (links.length === 0)
            return;
        selected = (selected + by + links.length) % links.length;
        links.forEach((link, n) => {
            link.setAttribute("aria-selected", String(n === selected));
        });
        links[selected].scrollIntoView({block: "nearest"});
    }

    input.addEventListener("focus", load);
    input.addEventListener("input", search);
    input.addEventListener("keydown", (event) => {
        const links = results.querySelectorAll("a");
        if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            move(event.key === "ArrowDown" ? 1 : selected < 0 ? 0 : -1);
            event.preventDefault();
        } else if (event.key === "Enter" && links.length > 0) {
            location.href = links[Math.max(0, selected)].href;
            results.hidden = true;
        } else if (event.key === "Escape") {
            results.hidden = true;
            input.blur();
        }
    });
    results.addEventListener("click", () => { results.hidden = true; });
    document.addEventListener("click", (event) => {
        if (!event.target.closest(".search"))
            results.hidden = true;
    });
    document.addEventListener("keydown", (event) => {
        if (event.key === "/" && document.activeElement !== input &&
            !event.ctrlKey && !event.metaKey) {
            input.focus();
            event.preventDefault();
        }
    });
})();
