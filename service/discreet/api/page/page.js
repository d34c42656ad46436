// The page: gets a key, polls /metrics, shows figures.

import { Figure } from './chart.js';
import { showGuarantee } from './guarantee.js';
import { History, parse, recommenders, server, totals } from './measures.js';
import { Trial } from './trial.js';

const POLL_SECONDS = 1;
const SHOWN_SECONDS = { least: 60, most: 300 };
const KEY = 'discreet-key';
const TABLE_EVERY_SECONDS = 5;
const TABLE_ROWS = 24;

const id = (name) => document.getElementById(name);
const decimals = (value) => value.toFixed(2);
const percent = (value) => `${(value * 100).toFixed(value < 0.0995 && value > 0 ? 1 : 0)} %`;
const fine = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 1 });
const whole = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 0 });
const brief = new Intl.NumberFormat('en-GB', { notation: 'compact', maximumFractionDigits: 1 });
const amount = (value) => (value < 100 ? fine : value < 10_000 ? whole : brief).format(value);

const FIGURES = [
  new Figure({
    id: 'reward', title: 'Mean reward', format: decimals, ceiling: 1,
    series: [{ field: 'reward', name: 'mean reward' }],
    note: (point) => `of about ${amount(point?.learned ?? 0)} rewards, with the released noise`,
  }),
  new Figure({
    id: 'regret', title: 'Estimated regret per item', format: decimals, least: 0.2,
    series: [{ field: 'regret', name: 'estimated regret' }],
    note: "by the released model's own estimates",
  }),
  new Figure({
    id: 'spent', title: 'Privacy spent by a client', format: percent, ceiling: 1,
    series: [{ field: 'spentHalf', name: 'half of them' }, { field: 'spentMost', name: '9 in 10' }],
    note: (point) => `at most, of the budget for answers; ${amount(point?.clients ?? 0)} clients`,
  }),
  new Figure({
    id: 'release', title: 'Released models', format: amount, least: 4,
    series: [{ field: 'release', name: 'released models' }],
    note: (point) => (point?.cells
      ? `${amount(point.cells)} cells of the context space, ${amount(point.splits)} of them split`
      : 'answers are made from the newest'),
  }),
  new Figure({
    id: 'degraded', title: 'Degraded answers', format: percent, least: 0.1,
    series: [{ field: 'degraded', name: 'degraded share' }],
    note: 'not personalised: the budget is spent',
  }),
  new Figure({
    id: 'traffic', title: 'Answers a second', format: amount, least: 4,
    series: [{ field: 'answerRate', name: 'recommend' }],
    note: 'of the last 10 s',
  }),
];

const COLUMNS = [
  ['Mean reward', 'reward', decimals],
  ['Estimated regret', 'regret', decimals],
  ['Clients charged', 'clients', amount],
  ['Half spent at most', 'spentHalf', percent],
  ['9 in 10 spent at most', 'spentMost', percent],
  ['Released model', 'release', amount],
  ['Cells', 'cells', amount],
  ['Splits', 'splits', amount],
  ['Degraded', 'degraded', percent],
  ['Recommend a second', 'answerRate', amount],
  ['Rewards learned, about', 'learned', amount],
];

class Page {
  constructor() {
    this.history = new History(SHOWN_SECONDS.most);
    this.recommender = null;
    this.trial = new Trial((method, path, body) => this.call(method, path, body));
    this.rejected = false;
    this.figuresOnly = false;
    id('figures').append(...FIGURES.map((figure) => figure.root));
    id('ask-key').addEventListener('submit', (event) => this.submit(event));
    id('forget').addEventListener('click', () => this.forget());
    id('recommender').addEventListener('change', (event) => this.choose(event.target.value));
    addEventListener('hashchange', () => this.takeFragment() && this.poll());
    document.addEventListener('visibilitychange', () => document.hidden || this.poll());
  }

  // The key: from the fragment or the field, in this tab only, never in an address we send.

  get key() {
    return sessionStorage.getItem(KEY);
  }

  takeFragment() {
    const key = new URLSearchParams(location.hash.slice(1)).get('key');
    if (!key) return false;
    this.keep(key);
    history.replaceState(null, '', location.pathname);
    return true;
  }

  keep(key) {
    sessionStorage.setItem(KEY, key);
    this.rejected = false;
    this.figuresOnly = false;
  }

  submit(event) {
    event.preventDefault();
    this.keep(id('key').value.trim());
    id('key').value = '';
    this.poll();
  }

  forget() {
    sessionStorage.removeItem(KEY);
    this.history.clear();
    this.say('');
    this.needKey();
  }

  needKey() {
    const focus = id('ask-key').hidden;
    id('ask-key').hidden = false;
    for (const name of ['figures', 'trial', 'guarantee', 'table-holder', 'choose', 'forget', 'no-traffic']) id(name).hidden = true;
    this.recommender = null;
    this.health('waiting for a key', '');
    if (focus) id('key').focus();
  }

  // Talking to the server.

  async call(method, path, body) {
    const headers = { Authorization: `Bearer ${this.key}` };
    if (body) headers['Content-Type'] = 'application/json';
    try {
      const answer = await fetch(path, {
        method, headers, body: body && JSON.stringify(body), cache: 'no-store',
        signal: AbortSignal.timeout(10_000),
      });
      const text = await answer.text();
      const json = (answer.headers.get('content-type') ?? '').includes('json');
      return { status: answer.status, body: json ? JSON.parse(text) : text };
    } catch {
      return { status: 0, body: null };
    }
  }

  async start() {
    this.takeFragment();
    while (true) {
      if (!document.hidden) await this.poll();
      await new Promise((resolve) => { setTimeout(resolve, POLL_SECONDS * 1000); });
    }
  }

  async poll() {
    if (this.polling || this.rejected) return;
    if (!this.key) {
      this.needKey();
      return;
    }
    this.polling = true;
    try {
      const { status, body } = await this.call('GET', '/metrics');
      if (status === 200) await this.show(parse(body));
      else this.fail(status);
    } finally {
      this.polling = false;
    }
  }

  fail(status) {
    if (status === 401 || status === 403) {
      this.rejected = true;
      sessionStorage.removeItem(KEY);
      this.needKey();
      this.say(status === 401
        ? 'Unknown key. Was the server restarted with another one?'
        : 'This key cannot read the figures: it needs the metrics or the admin scope.');
      return;
    }
    id('figures').classList.add('stale');
    this.health(status ? 'failing' : 'not answering', 'bad');
    this.say(status
      ? `The server answers ${status} to /metrics. Trying again every second.`
      : 'The server is not answering. Trying again every second.');
  }

  // Showing.

  say(text) {
    const box = id('message');
    if (box.textContent !== text) box.textContent = text;
    box.hidden = !text;
  }

  health(text, mood) {
    const pill = id('health');
    if (pill.textContent !== text) pill.textContent = text;
    pill.className = `pill ${mood}`;
  }

  async show(samples) {
    const { storeUp, version } = server(samples);
    const names = await this.present(recommenders(samples));
    this.say(storeUp === false
      ? 'The store is not answering: requests get 503 until it is back.' : '');
    this.health(storeUp === false ? 'store down' : 'server and store up', storeUp === false ? 'bad' : 'good');
    id('figures').classList.remove('stale');
    id('ask-key').hidden = true;
    for (const name of ['figures', 'table-holder', 'choose', 'forget']) id(name).hidden = false;
    if (version) id('about').textContent = `Discreet ${version}. Figures since this page was opened, from /metrics every second.`;
    await this.offer(names);
    this.hint(names, totals(samples, this.recommender, 0));
    this.history.add(totals(samples, this.recommender, performance.now() / 1000));
    this.draw();
    await this.trial.follow(this.history.totals.at(-1).release);
  }

  /** Return those that still exist: what was counted about a removed one stays counted, and of the chosen one it may be missing for a moment. */
  async present(names) {
    if (this.figuresOnly) return names;
    const { status, body } = await this.call('GET', '/recommenders');
    this.figuresOnly = status === 403; // this key may not ask: all that were counted are shown
    const known = this.recommender ? [...new Set([...names, this.recommender])] : names;
    return status === 200 ? known.filter((name) => body.recommenders.includes(name)) : names;
  }

  /** Say what to do where there is nothing to see yet. */
  hint(names, { answers }) {
    const synthetic = this.trial.takesContext
      ? `, or send it synthetic users: discreet simulate --traffic --recommender ${this.recommender} (make traffic for the demo)`
      : ', or let your application POST /recommend';
    const text = names.length === 0
      ? 'There is no recommender yet. Start the server with --demo or --config FILE, or PUT /recommenders/NAME; see the API.'
      : `${this.recommender} has not been asked anything yet. Try it below${synthetic}.`;
    const box = id('no-traffic');
    if (box.textContent !== text) box.textContent = text;
    box.hidden = answers > 0;
  }

  async offer(names) {
    const select = id('recommender');
    const listed = [...select.options].map((option) => option.value);
    if (listed.join('\n') !== names.join('\n')) {
      select.replaceChildren(...names.map((name) => new Option(name, name)));
      if (names.includes(this.recommender)) select.value = this.recommender;
    }
    if (this.recommender === null || (names.length && !names.includes(this.recommender))) {
      await this.choose(names[0] ?? '');
    }
  }

  async choose(recommender) {
    this.recommender = recommender;
    this.history.clear();
    await this.trial.use(recommender);
    await showGuarantee((method, path) => this.call(method, path), recommender);
  }

  draw() {
    const { points } = this.history;
    const span = points.length ? points.at(-1).at - points[0].at : 0;
    FIGURES.forEach((figure) => figure.show(points, Math.max(span, SHOWN_SECONDS.least)));
    if (id('table-holder').open) this.tabulate();
  }

  tabulate() {
    const last = this.history.points.at(-1);
    if (!last) return;
    const row = (tag, cells) => {
      const made = document.createElement('tr');
      made.append(...cells.map((text) => Object.assign(document.createElement(tag), { textContent: text })));
      return made;
    };
    const slot = (point) => Math.floor((last.at - point.at) / TABLE_EVERY_SECONDS);
    const kept = this.history.points.filter((p, i, all) => i === all.length - 1 || slot(p) !== slot(all[i + 1]));
    const rows = kept.reverse().slice(0, TABLE_ROWS).map((point) => row('td', [
      `${Math.round(last.at - point.at)} s ago`,
      ...COLUMNS.map(([, field, format]) => (Number.isFinite(point[field]) ? format(point[field]) : '–')),
    ]));
    const head = row('th', ['When', ...COLUMNS.map(([title]) => title)]);
    head.childNodes.forEach((cell) => { cell.scope = 'col'; });
    id('table').replaceChildren(head, ...rows);
  }
}

id('table-holder').addEventListener('toggle', () => page.draw());
const page = new Page();
page.start();
