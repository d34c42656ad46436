// From Prometheus text to the figures on the page. No drawing here.

const NAMES = {
  recommendations: 'discreet_recommendations_total',
  learned: 'discreet_released_feedback',
  reward: 'discreet_released_reward_mean',
  regret: 'discreet_released_regret',
  spent: 'discreet_clients_spent_total',
  release: 'discreet_release',
  cells: 'discreet_cells',
  splits: 'discreet_splits',
  storeUp: 'discreet_store_up',
  build: 'discreet_build_info',
};

// Answers that were decided now: a repeated one is an old answer given again.
const DECIDED = new Set(['personalised', 'degraded', 'unprotected']);

// Rates are taken over this much time: long enough to be calm, short enough to see change.
const WINDOW_SECONDS = 10;

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/;
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** Return [{name, labels, value}] for every sample line of a Prometheus text. */
export function parse(text) {
  const samples = [];
  for (const line of text.split('\n')) {
    if (!line || line[0] === '#') continue;
    const found = LINE.exec(line);
    if (!found) continue;
    const labels = {};
    for (const [, name, value] of (found[2] ?? '').matchAll(LABEL)) {
      labels[name] = value.replace(/\\(.)/g, (_, c) => (c === 'n' ? '\n' : c));
    }
    samples.push({ name: found[1], labels, value: number(found[3]) });
  }
  return samples;
}

function number(text) {
  if (text === '+Inf') return Infinity;
  if (text === '-Inf') return -Infinity;
  return Number(text);
}

/** Return every recommender that the samples name, sorted. */
export function recommenders(samples) {
  const names = samples.map((sample) => sample.labels.recommender).filter(Boolean);
  return [...new Set(names)].sort();
}

/** Return the version that answers, and whether its store does. */
export function server(samples) {
  const up = samples.filter((sample) => sample.name === NAMES.storeUp);
  const build = samples.find((sample) => sample.name === NAMES.build);
  return {
    storeUp: up.length ? Math.min(...up.map((sample) => sample.value)) > 0 : null,
    version: build ? build.labels.version : '',
  };
}

/** Return one moment's totals of a recommender; an empty name means all of them. */
export function totals(samples, recommender, at) {
  const sum = (name, keep = () => true) => samples
    .filter((sample) => sample.name === name)
    .filter((sample) => !recommender || sample.labels.recommender === recommender)
    .filter((sample) => keep(sample.labels.outcome))
    .reduce((total, sample) => total + sample.value, 0);
  // Of all recommenders together there is no mean; NaN where nothing was released yet.
  const measured = (name) => samples.find((sample) => sample.name === name
    && recommender && sample.labels.recommender === recommender)?.value ?? NaN;
  return {
    at,
    answers: sum(NAMES.recommendations),
    decided: sum(NAMES.recommendations, (outcome) => DECIDED.has(outcome)),
    degraded: sum(NAMES.recommendations, (outcome) => outcome === 'degraded'),
    learned: sum(NAMES.learned),
    reward: measured(NAMES.reward),
    regret: measured(NAMES.regret),
    ...spending(samples, recommender),
    release: sum(NAMES.release),
    cells: sum(NAMES.cells),
    splits: sum(NAMES.splits),
  };
}

/**
 * Return how many clients were ever charged, and the shares of their budgets that half of them, and
 * nine in ten, have not exceeded: upper ends of the tenths that the metrics count in.
 */
export function spending(samples, recommender) {
  const atLeast = new Map();
  for (const { name, labels, value } of samples) {
    if (name !== NAMES.spent || !recommender || labels.recommender !== recommender) continue;
    atLeast.set(Number(labels.share), (atLeast.get(Number(labels.share)) ?? 0) + value);
  }
  const clients = atLeast.get(0) ?? 0;
  const shares = [...atLeast.keys()].filter((share) => share > 0).sort((a, b) => a - b);
  const within = (part) => {
    if (!clients) return NaN;
    // Whoever has not reached a share has spent less than it.
    return shares.find((share) => clients - atLeast.get(share) >= part * clients) ?? 1;
  };
  return { clients, spentHalf: within(0.5), spentMost: within(0.9) };
}

/** Return what happened between two moments; NaN where nothing did. */
export function between(before, now) {
  const seconds = now.at - before.at;
  const change = (field) => now[field] - before[field];
  return {
    at: now.at,
    reward: now.reward,
    regret: now.regret,
    learned: now.learned,
    clients: now.clients,
    spentHalf: now.spentHalf,
    spentMost: now.spentMost,
    release: now.release,
    cells: now.cells,
    splits: now.splits,
    degraded: change('degraded') / change('decided'),
    answerRate: change('answers') / seconds,
  };
}

/** Keeps a few minutes of totals and turns them into points to draw. */
export class History {
  constructor(seconds) {
    this.seconds = seconds;
    this.clear();
  }

  clear() {
    this.totals = [];
    this.points = [];
  }

  add(now) {
    const last = this.totals.at(-1);
    // Totals only grow; when they shrink, the server was restarted, and so is the history.
    if (last && (now.answers < last.answers || now.clients < last.clients)) this.clear();
    this.totals.push(now);
    const first = this.totals.find((one) => one.at >= now.at - WINDOW_SECONDS - 0.5);
    if (first !== now) this.points.push(between(first, now));
    while (this.totals[0].at < now.at - WINDOW_SECONDS * 2) this.totals.shift();
    while (this.points.length && this.points[0].at < now.at - this.seconds) this.points.shift();
  }
}
