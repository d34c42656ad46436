// "Try it": ask as a test user, send feedback, watch the budget.

import { element } from './chart.js';
import { ContextInputs } from './context.js';
import { ModelMap } from './map.js';

const NEW_USERS = 20;
const REMEMBERED = 24;

const id = (name) => document.getElementById(name);
const random = (length) => {
  const bytes = crypto.getRandomValues(new Uint8Array(length));
  return [...bytes].map((byte) => (byte % 36).toString(36)).join('');
};
const round = (value) => Math.round(value * 100) / 100;

function paragraph(className, ...parts) {
  const made = document.createElement('p');
  made.className = className;
  made.append(...parts);
  return made;
}

function tag(personalised) {
  const made = document.createElement('span');
  made.className = personalised ? 'tag' : 'tag no';
  made.textContent = personalised ? 'personalised' : 'not personalised';
  return made;
}

export class Trial {
  /** `call(method, path, body)` returns {status, body}; it adds the key. */
  constructor(call) {
    this.call = call;
    this.map = new ModelMap(call, () => this.drawPad());
    this.inputs = new ContextInputs(id('controls'), undefined);
    this.past = [];
    this.open = null;
    this.working = 0;
    id('ask').addEventListener('click', () => this.during(() => this.ask()));
    id('ask-many').addEventListener('click', () => this.during(() => this.askMany()));
    id('new-user').addEventListener('click', () => this.newUser());
    id('like').addEventListener('click', () => this.during(() => this.sendFeedback(1)));
    id('dislike').addEventListener('click', () => this.during(() => this.sendFeedback(0)));
    id('pad').addEventListener('click', (event) => this.pick(event));
    this.newUser();
  }

  /** Show the panel for a recommender, or say why it cannot be shown. */
  async use(recommender) {
    this.recommender = recommender;
    id('trial').hidden = !recommender;
    if (recommender) await this.during(() => this.load(recommender));
  }

  async load(recommender) {
    const { status, body } = await this.call('GET', `/recommenders/${encodeURIComponent(recommender)}`);
    if (recommender !== this.recommender) return; // another one was chosen meanwhile
    const usable = status === 200;
    id('trial-body').hidden = !usable;
    id('trial-why').hidden = usable;
    if (!usable) {
      id('trial-why').textContent = this.whyNot(status);
      return;
    }
    // Families differ in what they protect: some charge nothing for an answer.
    this.budget = body.privacy?.answers?.budget?.epsilon ?? body.privacy?.budget?.epsilon;
    this.past = [];
    this.inputs = new ContextInputs(id('controls'), body.context, () => this.drawPad());
    this.newUser();
    id('crowd').hidden = true;
    id('trial-body').classList.toggle('plain', !body.context);
    id('pad').toggleAttribute('hidden', !this.inputs.square);
    this.map.use(recommender, this.inputs.square ? body.items.map((item) => item.id) : null);
    this.drawPad();
  }

  get takesContext() {
    return this.inputs.controls.length > 0;
  }

  /** Show the map of a newer model, if there is one. */
  async follow(release) {
    await this.map.follow(release);
  }

  whyNot(status) {
    return status === 403
      ? 'This key can read the figures only: trying needs the serve and admin scopes.'
      : 'This recommender cannot be tried now.';
  }

  pick(event) {
    const box = id('pad').getBoundingClientRect();
    const clip = (value) => Math.min(1, Math.max(0, value));
    this.inputs.moveTo(clip((event.clientX - box.left) / box.width), clip(1 - (event.clientY - box.top) / box.height));
    this.drawPad();
  }

  drawPad() {
    if (!this.inputs.square) return;
    const { x, y } = this.place();
    const past = this.past.map((one) => {
      const dot = element('circle', { class: 'past', cx: one.x, cy: one.y, r: 1.6 });
      dot.append(element('title', {}, one.item));
      return dot;
    });
    id('pad').replaceChildren(
      ...this.map.shapes(),
      element('line', { class: 'cross', x1: x, x2: x, y1: 0, y2: 100 }),
      element('line', { class: 'cross', x1: 0, x2: 100, y1: y, y2: y }),
      ...past,
      element('circle', { class: 'here', cx: x, cy: y, r: 3 }),
    );
  }

  /** Return where the test user is on the square. */
  place() {
    const [first, second] = this.inputs.value;
    return { x: first * 100, y: 100 - second * 100 };
  }

  newUser() {
    this.client = `page-${random(6)}`;
    id('visitor').textContent = this.client;
    id('answer').replaceChildren(paragraph('quiet', this.inputs.controls.length ? 'Choose a context and press Recommend.' : 'Press Recommend.'));
    id('opinion').hidden = true;
  }

  /** Note that work begins or ends; nothing can be pressed before all of it has ended. */
  work(change) {
    this.working += change;
    const busy = this.working > 0;
    id('trial').setAttribute('aria-busy', busy);
    for (const name of ['ask', 'ask-many']) id(name).disabled = busy;
    for (const name of ['like', 'dislike']) id(name).disabled = busy || this.open === null;
  }

  async during(work) {
    this.work(1);
    try {
      await work();
    } finally {
      this.work(-1);
    }
  }

  request(client) {
    return { recommender: this.recommender, client, context: this.inputs.value };
  }

  async ask() {
    id('opinion').hidden = true;
    this.open = null;
    const { status, body } = await this.call('POST', '/recommend', this.request(this.client));
    if (status !== 200) {
      this.refused(status, body);
      return;
    }
    if (!body.items.length) {
      id('answer').replaceChildren(paragraph('quiet', body.reason ?? 'There is nothing to recommend.'));
      return;
    }
    const item = body.items[0].id;
    this.open = body.recommendation_id;
    if (this.inputs.square) this.past = [...this.past, { ...this.place(), item }].slice(-REMEMBERED);
    this.drawPad();
    id('answer').replaceChildren(
      paragraph('item', item),
      paragraph('', tag(body.personalised)),
      ...(body.reason ? [paragraph('quiet', body.reason)] : []),
      ...this.budgetLeft(body),
    );
    id('thanks').textContent = '';
    id('opinion').hidden = false;
  }

  budgetLeft(answer) {
    const left = answer.privacy.remaining?.epsilon;
    if (left === null || left === undefined || !this.budget) return [];
    const bar = document.createElement('progress');
    Object.assign(bar, { max: this.budget, value: left });
    const text = `ε ${round(left)} of ${round(this.budget)} left for ${this.client}`;
    bar.setAttribute('aria-label', text);
    return [paragraph('quiet', text), bar];
  }

  async askMany() {
    const requests = Array.from({ length: NEW_USERS }, () => this.request(`page-${random(8)}`));
    const { status, body } = await this.call('POST', '/recommend/batch', { requests });
    if (status !== 200) {
      this.refused(status, body);
      return;
    }
    const failed = body.results.find((one) => one.status !== 200);
    if (failed) {
      this.refused(failed.status, failed.problem);
      return;
    }
    const counts = new Map();
    for (const { items } of body.results) {
      const item = items[0]?.id ?? 'nothing';
      counts.set(item, (counts.get(item) ?? 0) + 1);
    }
    const rows = [...counts].sort((a, b) => b[1] - a[1]).map(([item, count]) => {
      const row = document.createElement('li');
      const [name, bar, number] = ['span', 'b', 'span'].map((tagName) => document.createElement(tagName));
      name.textContent = item;
      number.textContent = count;
      bar.style.width = `${(100 * count) / NEW_USERS}%`;
      row.append(name, bar, number);
      return row;
    });
    id('crowd-list').replaceChildren(...rows);
    id('crowd').hidden = false;
  }

  async sendFeedback(reward) {
    const { status, body } = await this.call('POST', '/feedback', {
      recommendation_id: this.open, reward,
    });
    this.open = null;
    id('thanks').textContent = status === 200 ? this.receipt(body) : this.reason(status, body);
  }

  receipt({ learned }) {
    return learned ? 'Counted.' : 'Accepted, not learned: the budget for feedback is spent.';
  }

  refused(status, body) {
    id('answer').replaceChildren(paragraph('message', this.reason(status, body)));
  }

  reason(status, body) {
    if (status === 0) return 'The server did not answer.';
    return body?.detail ?? body?.title ?? `The server answered ${status}.`;
  }
}
