// The map: the square of contexts, coloured by what the released model recommends first.

import { element } from './chart.js';

const GOLDEN_ANGLE = 137.508;
const LEGEND_ROWS = 6;

const id = (name) => document.getElementById(name);
const share = new Intl.NumberFormat('en-GB', { style: 'percent', maximumFractionDigits: 0 });

/** Return a colour that stays with an item: neighbours in the catalogue are far apart in hue. */
export function colourOf(position) {
  const hue = (position * GOLDEN_ANGLE) % 360;
  return `hsl(${hue.toFixed(0)} ${[62, 45, 75][position % 3]}% ${[52, 64, 44][Math.floor(position / 3) % 3]}%)`;
}

/** Return rectangles that cover a square of 100 by 100, one for each run of equal fields. */
export function rectangles(first) {
  const size = 100 / (first.length || 1);
  return first.flatMap((row, index) => {
    const runs = [];
    row.forEach((item, column) => {
      if (runs.length && runs.at(-1).item === item) runs.at(-1).columns += 1;
      else runs.push({ item, column, columns: 1 });
    });
    return runs.map((run) => ({
      item: run.item,
      x: run.column * size,
      y: 100 - (index + 1) * size, // the second number grows upwards
      width: run.columns * size,
      height: size,
    }));
  });
}

/** Return how much of the map each item has, the largest first. */
export function shares(drawn) {
  const counts = new Map();
  drawn.first.flat().forEach((item) => counts.set(item, (counts.get(item) ?? 0) + 1));
  const all = drawn.first.flat().length;
  return [...counts].map(([item, count]) => ({ name: drawn.items[item], part: count / all }))
    .sort((a, b) => b.part - a.part);
}

export class ModelMap {
  /** `call(method, path)` returns {status, body}; `changed()` is called when there is a new map. */
  constructor(call, changed) {
    this.call = call;
    this.changed = changed;
    this.use('', null);
  }

  /** Begin with a recommender; `items` are its ids in the catalogue's order, null if it has no map. */
  use(recommender, items) {
    this.recommender = recommender;
    this.places = items && new Map(items.map((item, index) => [item, index]));
    this.drawn = null;
    id('map').hidden = true;
  }

  /** Fetch the map if another model was released since. */
  async follow(release) {
    const { recommender } = this;
    if (!this.places || this.drawn?.release === release) return;
    const path = `/recommenders/${encodeURIComponent(recommender)}/model/map`;
    const { status, body } = await this.call('GET', path);
    if (recommender !== this.recommender) return; // another one was chosen meanwhile
    if (status === 404) this.places = null; // there is none, and there will be none
    if (status !== 200) return;
    this.drawn = body;
    this.describe();
    this.changed();
  }

  colour(item) {
    return colourOf(this.places.get(item) ?? this.places.size);
  }

  /** Return what to draw below everything else on the square. */
  shapes() {
    if (!this.drawn) return [];
    return rectangles(this.drawn.first).map(({ item, ...place }) => {
      const shape = element('rect', { class: 'field', fill: this.colour(this.drawn.items[item]), ...place });
      shape.append(element('title', {}, this.drawn.items[item]));
      return shape;
    });
  }

  describe() {
    id('map').hidden = false;
    const { release } = this.drawn;
    id('map-title').textContent = this.drawn.first.length
      ? `Released model ${release} recommends first` : 'Nothing has been learned yet';
    const rows = shares(this.drawn);
    const shown = rows.slice(0, LEGEND_ROWS).map(({ name, part }) => this.row(name, part));
    if (rows.length > LEGEND_ROWS) {
      const rest = rows.slice(LEGEND_ROWS).reduce((sum, { part }) => sum + part, 0);
      shown.push(this.row(`${rows.length - LEGEND_ROWS} more`, rest));
    }
    id('map-legend').replaceChildren(...shown);
  }

  row(name, part) {
    const made = document.createElement('li');
    const [swatch, label, number] = ['i', 'span', 'span'].map((tag) => document.createElement(tag));
    if (this.places.has(name)) swatch.style.background = this.colour(name);
    label.textContent = name;
    number.textContent = share.format(part);
    made.append(swatch, label, number);
    return made;
  }
}
