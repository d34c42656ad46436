// A person's statement: trades a code for a key, asks for the statement with it, and draws it.

const id = (name) => document.getElementById(name);
const text = (tag, content) => Object.assign(document.createElement(tag), { textContent: content });
const KEPT = 'discreet-statement';

const number = (value) => value.toLocaleString('en', { maximumFractionDigits: 3 });
const amount = ({ epsilon }) => (epsilon === null ? 'not limited' : number(epsilon));

const lasts = (seconds) => {
  if (seconds === null) return 'for ever';
  const days = seconds / 86400;
  return Number.isInteger(days) ? `in ${days} days` : `in ${seconds / 3600} hours`;
};

const table = (headings, rows) => {
  const made = document.createElement('table');
  const line = (cells, tag) => {
    const row = document.createElement('tr');
    row.append(...cells.map((cell) => text(tag, cell)));
    return row;
  };
  made.append(line(headings, 'th'), ...rows.map((cells) => line(cells, 'td')));
  return made;
};

const accountRow = (name, account) => (account.protected
  ? [name, amount(account.spent), amount(account.remaining), `${amount(account.budget)} ${lasts(account.budget.per_seconds)}`,
    account.resets_at ? account.resets_at.slice(0, 10) : 'never', amount(account.ever)]
  : [name, 'not protected', '', '', '', '']);

const draw = (statement) => {
  id('accounts').replaceChildren(...statement.recommenders.flatMap((one) => [
    text('h2', one.ledger ? `${one.recommender} (shares its count with all of “${one.ledger}”)` : one.recommender),
    table(['', 'spent', 'left', 'budget', 'begins anew', 'ever spent'], [
      accountRow('Answers', one.answers), accountRow('Feedback', one.feedback)]),
  ]));
  id('kept').textContent = `The last ${statement.kept_days} days.`;
  const lines = statement.recommenders
    .flatMap((one) => one.days.map((day) => ({ ...day, recommender: one.recommender })))
    .sort((a, b) => (a.day < b.day ? 1 : -1));
  id('days').replaceChildren(lines.length
    ? table(['day', 'with', 'for', 'times', 'epsilon'], lines.map((line) => [
      line.day, line.recommender, line.account, String(line.uses), amount(line)]))
    : text('p', 'Nothing was spent.'));
};

const say = (message) => {
  id('message').textContent = message;
  id('message').hidden = !message;
};

const call = async (method, path, { key, body } = {}) => {
  const headers = {};
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body) headers['Content-Type'] = 'application/json';
  const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body), cache: 'no-store' });
  return { status: answer.status, body: await answer.json().catch(() => ({})) };
};

const show = async ({ key, client }) => {
  const { status, body } = await call('GET', `/clients/${encodeURIComponent(client)}/statement`, { key });
  if (status !== 200) {
    sessionStorage.removeItem(KEPT);
    say(body.detail || 'The statement cannot be shown now.');
    return;
  }
  draw(body);
  say('');
  id('ask-code').hidden = true;
  id('statement').hidden = false;
  id('leave').hidden = false;
};

const redeem = async (code) => {
  const { status, body } = await call('POST', '/enrolments/redeem', { body: { code } });
  if (status !== 201) {
    say(body.detail || 'That code cannot be used.');
    return;
  }
  const held = { key: body.key, client: body.client };
  sessionStorage.setItem(KEPT, JSON.stringify(held));
  await show(held);
};

id('ask-code').addEventListener('submit', (event) => {
  event.preventDefault();
  redeem(id('code').value);
});
id('leave').addEventListener('click', () => {
  sessionStorage.removeItem(KEPT);
  window.location.reload();
});

// A link may carry the code behind a #, which browsers do not send; it is taken out of the address.
const linked = decodeURIComponent(window.location.hash.slice(1));
if (linked) {
  window.history.replaceState(null, '', window.location.pathname);
  id('code').value = linked;
}
const kept = sessionStorage.getItem(KEPT);
if (kept) show(JSON.parse(kept));
