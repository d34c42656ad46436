// Recommendations in rows, arranged on this device.

import { call } from './calls.js';
import { element, id, onClick, times } from './elements.js';

export class Rows {
  constructor(page) {
    this.page = page;
    onClick(id('fetch-rows'), () => page.attempt(() => this.fetch()));
  }

  show({ server }) {
    id('fetch-rows').disabled = !server;
  }

  async fetch() {
    const { rows } = await call('POST', 'recommendations');
    id('rows').replaceChildren(...rows.filter(({ items }) => items.length).map((row, place) => this.row(row, place)));
    if (!id('rows').children.length) id('rows').append(element('p', { className: 'quiet' }, 'The server has nothing to recommend yet.'));
    id('fetch-rows').textContent = 'Update recommendations';
  }

  row({ category, items, personalised, seen, local }, place) {
    const about = local ? ' made on this device from what is popular and your history; nothing was sent'
      : category !== null ? ` you have seen ${times(seen, 'item')}`
        : personalised ? ' from your list' : ' popular: the server knows nothing about you';
    const heading = element('h3', { id: `row-${place}` },
      local ? 'For you' : category ?? 'From the server', element('small', {}, about));
    const list = element('ul', { className: 'cards', tabIndex: 0 }, ...items.map((item) => this.card(item)));
    list.setAttribute('aria-labelledby', heading.id);
    return element('section', { className: 'recommended-row' }, heading, list);
  }

  card({ id: item, title, categories }) {
    const seen = element('button', { type: 'button', className: 'second' }, 'Seen it');
    seen.setAttribute('aria-label', `Seen ${title}`);
    onClick(seen, () => this.page.attempt(async () => {
      await this.page.history.mark(item, true);
      seen.textContent = 'In your history';
      seen.disabled = true;
    }));
    const card = element('li', {}, element('b', {}, title), element('span', { className: 'quiet' }, categories.join(', ')), seen);
    card.dataset.item = item;
    return card;
  }
}
