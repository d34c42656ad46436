// The guarantee card of a recommender, as the server answers it.

const id = (name) => document.getElementById(name);

const dial = (price) => {
  if (!price) return 'nothing is charged';
  const delta = price.delta ? `, δ ${price.delta}` : '';
  const one = price.epsilon === null
    ? ' It is not protected.'
    : ` Price: ε ${price.epsilon}${delta} for ${price.unit}.`;
  const per = price.window ? ` per ${price.window.per}` : '';
  const budget = price.budget_epsilon === null
    ? ''
    : ` Budget: ε ${price.budget_epsilon}${per}.`;
  return `Protects ${price.protects}.${one}${budget} Mechanism: ${price.mechanism}.`;
};

const ROWS = [
  ['Protected', (card) => card.protected],
  ['Against', (card) => card.against],
  ['Neighbours', (card) => card.neighbours],
  ['Unit', (card) => card.unit],
  ['Covers', (card) => (card.closed_loop
    ? 'all answers and released models together, while feedback is learned'
    : 'one release, everything else held fixed')],
  ['Answers', (card) => dial(card.answers)],
  ['Feedback', (card) => dial(card.feedback)],
  ['Not covered', (card) => card.not_covered.join('; ')],
];

/** Show what a recommender promises, or nothing if the key does not allow to read it. */
export async function showGuarantee(call, recommender) {
  const holder = id('guarantee');
  const path = `/recommenders/${encodeURIComponent(recommender)}/guarantee`;
  const { status, body } = recommender ? await call('GET', path) : { status: 0 };
  holder.hidden = status !== 200;
  if (status !== 200) return;
  const text = (tag, content) => Object.assign(document.createElement(tag), { textContent: content });
  id('guarantee-card').replaceChildren(
    ...ROWS.flatMap(([title, write]) => [text('dt', title), text('dd', write(body))]),
  );
}
