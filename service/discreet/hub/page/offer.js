// A changed catalogue: what is different, and the owner's decision. And what is pinned.

import { call } from './calls.js';
import { element, id, onClick, times, when } from './elements.js';

const listed = (names) => (names.length > 8 ? `${names.slice(0, 8).join(', ')} and ${names.length - 8} more` : names.join(', '));

export class Offer {
  constructor(page) {
    this.page = page;
    onClick(id('offer-accept'), () => page.attempt(() => this.decide(true)));
    onClick(id('offer-refuse'), () => page.attempt(() => this.decide(false)));
    onClick(id('reset-pins'), () => page.attempt(() => this.reset()));
  }

  show({ offered, catalogue }) {
    id('offer').hidden = !offered;
    if (offered) this.compare(offered);
    id('pins').hidden = !catalogue?.pinned;
    if (catalogue?.pinned) {
      id('about-pins').textContent = `${times(catalogue.pinned, 'item')} had other categories in an earlier catalogue, and ${catalogue.pinned === 1 ? 'is' : 'are'} still treated as privately as these ask for.`;
    }
  }

  compare({ added, removed, renamed, moves, moved, new_categories: fresh, lost_categories: lost, fetched }) {
    const lines = [`Fetched on ${when(fetched)}.`];
    if (added) lines.push(`${times(added, 'item')} added.`);
    if (removed) lines.push(`${times(removed, 'item')} removed.`);
    if (renamed) lines.push(`${times(renamed, 'item')} with another title.`);
    if (moves) lines.push(`${times(moves, 'item')} in other categories.`);
    if (fresh.length) lines.push(`New categories: ${listed(fresh)}. Nothing in them is sent until you choose for them.`);
    if (lost.length) lines.push(`Categories that are gone: ${listed(lost)}.`);
    id('offer-changes').replaceChildren(...lines.map((text) => element('li', {}, text)));
    id('offer-moved').hidden = !moved.length;
    id('offer-moved').querySelector('summary').textContent = 'Items in other categories';
    id('offer-moved').querySelector('ul').replaceChildren(...moved.map(({ title, before, after, seen }) => element('li', {},
      element('span', {}, `${title}: ${before.join(', ')} → ${after.join(', ')}`),
      ...(seen ? [element('small', {}, 'in your history')] : []))));
  }

  async decide(accept) {
    const { rematched, state } = await call('POST', 'catalogue/offer', { digest: this.page.state.offered.digest, accept });
    this.page.show(state);
    await this.page.history.refresh();
    this.page.showStatus(!accept ? 'The catalogue stays as it was.'
      : `The new catalogue is used from now on.${rematched ? ` ${times(rematched, 'title')} of your imports could be matched now.` : ''}`);
  }

  async reset() {
    this.page.show(await call('DELETE', 'pins'));
    this.page.showStatus('Items are treated by the categories that they have now.');
  }
}
