// One figure: a title, the current value as text, and a line over time drawn as SVG.

const SVG = 'http://www.w3.org/2000/svg';
const LEFT = 40;
const BOTTOM = 18;
const TOP = 6;
const RIGHT = 8;
const GAP_SECONDS = 5;

export function element(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function html(name, className, text = '') {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.textContent = text;
  return made;
}

/** Return a round number just above `value`, and a step that divides it. */
export function roundUp(value) {
  if (!(value > 0)) return { top: 1, step: 0.5 };
  const power = 10 ** Math.floor(Math.log10(value));
  const multiple = [1, 2, 4, 5, 10].find((m) => m * power >= value * 0.9999);
  const top = multiple * power;
  return { top, step: multiple === 5 ? top / 5 : top / 2 };
}

const ago = (seconds) => (seconds < 119
  ? `${Math.round(seconds)} s ago` : `${Math.round(seconds / 60)} min ago`);
const finite = (values) => values.filter((value) => Number.isFinite(value));

export class Figure {
  /**
   * `series` is one or two of {field, name}; `format` writes a value; `note` explains, as a text
   * or as a function of the point that is shown;
   * `ceiling` fixes the top of the scale, `least` keeps it from shrinking below.
   */
  constructor({ id, title, series, format, note, ceiling, least = 0 }) {
    Object.assign(this, { id, title, series, format, note, ceiling, least });
    this.points = [];
    this.cursor = null;
    this.root = html('figure', series.length > 1 ? 'pair' : '');
    this.root.id = id;
    const caption = html('figcaption');
    this.now = html('div', 'now', '–');
    this.hint = html('p', 'quiet', this.noteOf(null));
    caption.append(html('h2', '', title), this.now, this.hint);
    this.svg = element('svg', { class: 'chart', role: 'img' });
    this.root.append(caption, this.svg);
    this.svg.addEventListener('pointermove', (event) => this.point(event.offsetX));
    this.svg.addEventListener('pointerleave', () => this.point(null));
    new ResizeObserver(() => this.draw()).observe(this.svg);
  }

  show(points, seconds) {
    this.points = points;
    this.seconds = seconds;
    this.draw();
  }

  point(x) {
    this.cursor = x;
    this.draw();
  }

  draw() {
    const width = this.svg.clientWidth;
    const height = this.svg.clientHeight;
    if (!width || !height || !this.seconds) return;
    const end = this.points.length ? this.points.at(-1).at : 0;
    const values = finite(this.points.flatMap((p) => this.series.map((s) => p[s.field])));
    const { top, step } = roundUp(Math.max(this.ceiling ?? 0, this.least, ...values));
    const toX = (at) => LEFT + (1 - (end - at) / this.seconds) * (width - LEFT - RIGHT);
    const toY = (value) => TOP + (1 - value / top) * (height - TOP - BOTTOM);
    const parts = [];
    for (let mark = 0; mark <= top * 1.0001; mark += step) {
      const y = toY(mark);
      parts.push(
        element('line', { class: 'grid', x1: LEFT, x2: width - RIGHT, y1: y, y2: y }),
        element('text', { x: LEFT - 6, y: y + 4, 'text-anchor': 'end' }, this.format(mark)),
      );
    }
    parts.push(
      element('text', { x: LEFT, y: height - 4 }, ago(this.seconds)),
      element('text', { x: width - RIGHT, y: height - 4, 'text-anchor': 'end' }, 'now'),
    );
    const chosen = this.chosen(toX);
    this.series.forEach((one, index) => {
      const order = index ? ' two' : '';
      for (const run of this.runs(one.field)) {
        const path = run.map((p) => `${toX(p.at).toFixed(1)},${toY(p[one.field]).toFixed(1)}`);
        if (this.series.length === 1) {
          const ends = `L${toX(run.at(-1).at).toFixed(1)},${toY(0)} L${toX(run[0].at).toFixed(1)},${toY(0)} Z`;
          parts.push(element('path', { class: 'area', d: `M${path.join(' L')} ${ends}` }));
        }
        parts.push(element('path', { class: `line${order}`, d: `M${path.join(' L')}` }));
      }
      if (chosen && Number.isFinite(chosen[one.field])) {
        const place = { cx: toX(chosen.at), cy: toY(chosen[one.field]) };
        parts.push(element('circle', { class: `dot${order}`, r: 4.5, ...place }));
      }
    });
    if (chosen && this.cursor !== null) {
      const x = toX(chosen.at);
      parts.push(element('line', { class: 'cursor', x1: x, x2: x, y1: TOP, y2: height - BOTTOM }));
    }
    this.svg.replaceChildren(...parts);
    this.describe(chosen, end);
  }

  /** Return the point under the pointer, else the newest. */
  chosen(toX) {
    if (this.cursor === null || !this.points.length) return this.points.at(-1);
    const distance = (point) => Math.abs(toX(point.at) - this.cursor);
    return this.points.reduce((best, p) => (distance(p) < distance(best) ? p : best));
  }

  /** Return stretches without a hole: nothing is drawn where nothing was measured. */
  runs(field) {
    const runs = [];
    let previous = null;
    for (const point of this.points) {
      if (!Number.isFinite(point[field])) {
        previous = null;
        continue;
      }
      if (!previous || point.at - previous.at > GAP_SECONDS) runs.push([]);
      runs.at(-1).push(point);
      previous = point;
    }
    return runs;
  }

  noteOf(point) {
    return typeof this.note === 'function' ? this.note(point) : this.note;
  }

  text(point, one) {
    return point && Number.isFinite(point[one.field]) ? this.format(point[one.field]) : '–';
  }

  describe(point, end) {
    this.now.replaceChildren();
    this.series.forEach((one, index) => {
      const part = html('span', index ? 'two' : 'one');
      if (this.series.length > 1) part.append(html('i'));
      part.append(this.text(point, one));
      if (this.series.length > 1) part.append(html('small', '', ` ${one.name}`));
      this.now.append(part);
    });
    const older = point && this.cursor !== null && end - point.at >= 0.5;
    this.hint.textContent = older ? ago(end - point.at) : this.noteOf(point);
    this.svg.setAttribute('aria-label', this.summary());
  }

  /** Return what the line shows, in words. */
  summary() {
    const last = this.points.at(-1);
    const parts = this.series.map((one) => {
      const values = finite(this.points.map((p) => p[one.field]));
      if (!values.length) return `${one.name}: nothing yet`;
      const [low, high] = [Math.min(...values), Math.max(...values)].map(this.format);
      return `${one.name}: ${this.text(last, one)} now, between ${low} and ${high} so far`;
    });
    return `${this.title}. ${parts.join('; ')}.`;
  }
}
