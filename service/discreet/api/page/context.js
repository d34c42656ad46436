// Inputs for what a recommender wants to know about a client: numbers in [0, 1], or named fields.

const MOST_SLIDERS = 4;
const MOST_FIELDS = 8;
const UNKNOWN = '';

const round = (value) => Math.round(value * 100) / 100;
const make = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

function slider({ key, label, low, high, value, step, format, changed }) {
  const output = make('output');
  const input = make('input', { type: 'range', id: key, min: low, max: high, step });
  const control = { get: () => Number(input.value), set: (next) => { input.value = next; show(); } };
  const show = () => { output.textContent = format(Number(input.value)); };
  input.addEventListener('input', () => { show(); changed(); });
  control.element = make('label', { htmlFor: key }, label, output, input);
  control.set(value);
  return control;
}

function select({ key, label, options, changed }) {
  const input = make('select', { id: key }, ...options.map(([text, value]) => new Option(text, value)));
  input.addEventListener('change', changed);
  return { element: make('label', {}, label, input), get: () => input.value };
}

const FIELDS = {
  number: ({ range: [low, high] }, common) => {
    const step = (high - low) / 100;
    // As exact as a step is, or what is shown would not be what is sent.
    const digits = Math.min(20, Math.max(0, 1 - Math.floor(Math.log10(step))));
    const format = (value) => String(Number(value.toFixed(digits)));
    return slider({ ...common, low, high, step, value: (low + high) / 2, format });
  },
  boolean: (field, common) => {
    const control = select({ ...common, options: [['unknown', UNKNOWN], ['true', 'true'], ['false', 'false']].slice(field.required ? 1 : 0) });
    const { get } = control;
    return { ...control, get: () => ({ true: true, false: false })[get()] };
  },
  category: (field, common) => {
    if (!field.values) {
      const input = make('input', { type: 'text', id: common.key, maxLength: 200, placeholder: field.required ? 'any word' : 'unknown' });
      input.addEventListener('input', common.changed);
      return { element: make('label', {}, common.label, input), get: () => input.value || (field.required ? 'any' : undefined) };
    }
    const options = [['unknown', UNKNOWN], ...field.values.map((word) => [word, word])].slice(field.required ? 1 : 0);
    const control = select({ ...common, options });
    const { get } = control;
    return { ...control, get: () => get() || undefined };
  },
};

/** What a test user says about themselves, as a recommender's document wants it. */
export class ContextInputs {
  /** `declared` is the document's `context`, or undefined for families that take none. */
  constructor(holder, declared, changed) {
    this.controls = [];
    this.names = null;
    this.rest = 0;
    const notes = [];
    if (declared?.fields) this.named(declared.fields, changed, notes);
    else if (declared) this.vector(declared.dimensions, changed, notes);
    this.square = Boolean(declared) && !this.names && declared.dimensions === 2;
    holder.replaceChildren(...this.controls.map(({ element }) => element), ...notes);
  }

  vector(dimensions, changed, notes) {
    const shown = Math.min(dimensions, MOST_SLIDERS);
    this.controls = Array.from({ length: shown }, (_, index) => slider({
      key: `context-${index}`, label: `Context ${index + 1}`, low: 0, high: 1, step: 0.01,
      value: [0.25, 0.75][index] ?? 0.5, format: (value) => value.toFixed(2), changed,
    }));
    this.rest = dimensions - shown;
    if (this.rest) notes.push(make('p', { className: 'quiet', textContent: `and ${this.rest} more at 0.5` }));
  }

  named(fields, changed, notes) {
    const required = Object.keys(fields).filter((name) => fields[name].required);
    const others = Object.keys(fields).filter((name) => !fields[name].required);
    this.names = [...required, ...others.slice(0, Math.max(0, MOST_FIELDS - required.length))];
    this.controls = this.names.map((name) => FIELDS[fields[name].type](fields[name], {
      key: `context-${name}`, label: name, changed,
    }));
    const left = Object.keys(fields).length - this.names.length;
    if (left) notes.push(make('p', { className: 'quiet', textContent: `and ${left} more, unknown` }));
  }

  /** Return what goes into a request; undefined where there is nothing to say. */
  get value() {
    if (this.names) return Object.fromEntries(this.names.map((name, index) => [name, this.controls[index].get()]));
    if (!this.controls.length) return undefined;
    return [...this.controls.map(({ get }) => round(get())), ...Array(this.rest).fill(0.5)];
  }

  /** Move the first two numbers, as a click into the square does. */
  moveTo(x, y) {
    this.controls[0].set(round(x));
    this.controls[1].set(round(y));
  }
}
