// What scripts/page_check.py asks of a page of a report, in the page. Each function returns plain data.
"use strict";
const probes = {
  // Sizes and contents of tables, figures and the timeline; text that is hard to read; what was loaded besides.
  parts(tables, figures, leastContrast) {
    document.querySelectorAll("details").forEach(details => { details.open = true; });
    const canvas = document.getElementById("view");
    return {
      tables: Object.fromEntries(tables.map(id => [id, probes.table(document.getElementById(id))])),
      figures: Object.fromEntries(figures.map(id => [id, probes.figure(document.getElementById(id))])),
      timeline: canvas && { size: probes.size(canvas), colours: probes.coloursOf(canvas) },
      contrast: probes.hardToRead(leastContrast),
      requests: performance.getEntriesByType("resource").map(entry => entry.name),
      page: getComputedStyle(document.body).backgroundColor,
    };
  },
  size(element) {
    const box = element.getBoundingClientRect();
    return [Math.round(box.width), Math.round(box.height)];
  },
  table(table) {
    return table && [table.tBodies[0].rows.length, ...probes.size(table)];
  },
  figure(figure) {
    const svg = figure && figure.querySelector(":scope > svg");
    if (!svg) return figure && { note: (figure.querySelector(":scope > p.none")?.textContent ?? "").trim() };
    const count = selector => svg.querySelectorAll(selector).length;
    return {
      size: probes.size(svg), marks: count("circle, polygon, rect, line, polyline"), titles: count("title"),
      texts: count("text"), label: svg.getAttribute("aria-label"),
    };
  },
  coloursOf(canvas) {
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, found = new Set();
    for (let i = 0; i < pixels.length; i += 4) found.add((pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2]);
    return found.size;
  },
  // WCAG 2.1: relative luminance, and the contrast of text with what is behind it.
  luminance(colour) {
    const [r, g, b] = colour.match(/[\d.]+/g).slice(0, 3).map(Number).map(value => value / 255)
      .map(value => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  },
  behind(element) {
    for (let each = element; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if (!/, 0\)$|transparent/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  },
  hardToRead(least) {
    const found = [];
    for (const each of document.querySelectorAll("h1, h1 small, h2, td, th, p, li, .name, .value, .aside, svg text")) {
      const style = getComputedStyle(each), colour = each instanceof SVGElement ? style.fill : style.color;
      const [low, high] = [probes.luminance(colour), probes.luminance(probes.behind(each))].sort((a, b) => a - b);
      const ratio = (high + 0.05) / (low + 0.05);
      if (ratio < least) found.push([`${each.tagName}.${each.getAttribute("class")}`, Math.round(100 * ratio) / 100]);
    }
    return found;
  },
  // Whether two clicks on the first heading of the hot spots sort them down and up.
  sorts() {
    const table = document.getElementById("spots"), heading = table.querySelector("thead th");
    const order = () => [...table.tBodies[0].rows].map(row => Number(row.cells[0].dataset.key));
    const rises = list => list.every((value, at) => at === 0 || list[at - 1] <= value);
    heading.click();
    const down = order();
    heading.click();
    return rises(down.reverse()) && rises(order());
  },
  // What the timeline tells under the pointer, at the first place where it tells something.
  pointed() {
    const canvas = document.getElementById("view"), tip = document.getElementById("tip");
    const box = canvas.getBoundingClientRect();
    for (let y = box.top + 40; y < box.bottom; y += 4)
      for (let x = box.left + 125; x < box.right; x += 7) {
        canvas.dispatchEvent(new MouseEvent("mousemove", { clientX: x, clientY: y, bubbles: true }));
        if (tip.style.display === "block") return tip.textContent;
      }
    return "";
  },
  // How much wider than the window the page is.
  wider() {
    return Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth);
  },
  // Colours of a picture.
  coloursOfPicture(base64) {
    return new Promise(done => {
      const image = new Image();
      image.onload = () => {
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [image.width, image.height];
        canvas.getContext("2d").drawImage(image, 0, 0);
        done(probes.coloursOf(canvas));
      };
      image.src = `data:image/png;base64,${base64}`;
    });
  },
};
