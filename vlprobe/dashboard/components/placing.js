// Names beside marks without overlap: a part of components that draw a chart, joined before their script.
//
// An item has x, y (of its mark), half (of its mark), wide and high (of its name), all in pixels; arranged, it has a box. An
// obstacle is a box with a kind, a key of WEIGHTS, and the item that owns it, which it is no obstacle to.

const GAPS = [4, 10, 20, 34, 52, 74]; // between a mark and its name
const LEADER = 16; // a gap from which on a line leads from the mark to its name
const WAYS = [[1, 0], [-1, 0], [1, -1], [1, 1], [-1, -1], [-1, 1], [0, -1], [0, 1]];
const WEIGHTS = { mark: 8, name: 12, ring: 3, word: 5, arm: 1.2 };
const PASSES = 4;

function overlap(a, b) {
  const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  return wide > 0 && high > 0 ? wide * high : 0;
}

function around(x, y, half) {
  return { left: x - half, right: x + half, top: y - half, bottom: y + half };
}

// Where a name may stand: beside its mark in eight ways, ever further away.
function candidates(item) {
  const boxes = [];
  for (const gap of GAPS) {
    for (const [across, along] of WAYS) {
      const reach = item.half + gap * (across && along ? 0.7 : 1);
      const slant = across && along ? reach * 0.8 + item.high / 2 : reach + item.high / 2;
      const x = item.x + across * (reach + item.wide / 2);
      const y = item.y + along * (across ? slant * 0.75 : slant);
      boxes.push({
        left: x - item.wide / 2, right: x + item.wide / 2, top: y - item.high / 2, bottom: y + item.high / 2,
        gap, price: gap * 3 + WAYS.findIndex((way) => way[0] === across && way[1] === along),
      });
    }
  }
  return boxes;
}

function price(box, item, obstacles, size) {
  let sum = box.price;
  const out = Math.max(0, -box.left) + Math.max(0, box.right - size.wide) + Math.max(0, -box.top) + Math.max(0, box.bottom - size.high);
  sum += out * 400;
  for (const obstacle of obstacles) {
    if (obstacle.owner !== item) sum += overlap(box, obstacle) * WEIGHTS[obstacle.kind];
  }
  return sum;
}

// Every name to its best place, again and again, since each changes what is best for the others.
function arrange(items, fixed, size) {
  const choices = new Map(items.map((item) => [item, candidates(item)]));
  for (let pass = 0; pass < PASSES; pass += 1) {
    for (const item of items) {
      const names = items.filter((other) => other !== item && other.box).map((other) => ({ ...other.box, kind: "name", owner: other }));
      const obstacles = [...fixed, ...names];
      let best = Infinity;
      for (const box of choices.get(item)) {
        const cost = price(box, item, obstacles, size);
        if (cost < best) [best, item.box] = [cost, box];
      }
      item.cost = best;
    }
  }
}

// Whether a name stands free of other names, marks and words, near its mark.
function isFree(item, others) {
  return item.box.gap <= LEADER && !others.some((other) => other.kind !== "arm" && overlap(item.box, other) > 2);
}

// From a mark to the nearest edge of its name, where that is far.
function leader(item) {
  if (item.box.gap <= LEADER) return null;
  const x = Math.min(Math.max(item.x, item.box.left), item.box.right);
  const y = Math.min(Math.max(item.y, item.box.top), item.box.bottom);
  return { x1: item.x, y1: item.y, x2: x, y2: y };
}

// Both arms of a mark, `across` and `along` in per cent of the plot.
function crossed(item, { across, along }, size) {
  const [left, right] = across.map((end) => (end / 100) * size.wide);
  const [top, bottom] = along.map((end) => (end / 100) * size.high);
  return [
    { left, right, top: item.y - 3, bottom: item.y + 3, kind: "arm" },
    { left: item.x - 3, right: item.x + 3, top, bottom, kind: "arm" },
  ];
}

// Words that stay where they are.
function within(element, area) {
  const [box, outer] = [element.getBoundingClientRect(), area.getBoundingClientRect()];
  const { left: x, top: y } = outer;
  return { left: box.left - x, right: box.right - x, top: box.top - y, bottom: box.bottom - y, kind: "word" };
}
