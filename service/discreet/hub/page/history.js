// The history: importing one, selecting items, removing them.

import { call } from './calls.js';
import { element, id, number, onClick, times } from './elements.js';

const SHOWN = 12;
const TYPING_MS = 200;

export class History {
  constructor(page) {
    this.page = page;
    this.all = false;
    id('file').addEventListener('change', () => page.attempt(() => this.importFile()));
    id('search').addEventListener('input', () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => page.attempt(() => this.search()), TYPING_MS);
    });
    id('items-category').addEventListener('change', () => page.attempt(() => this.search()));
    onClick(id('show-all'), () => {
      this.all = !this.all;
      return page.attempt(() => this.list());
    });
    onClick(id('erase'), () => id('confirm-erase').showModal());
    id('confirm-erase').addEventListener('close', () => {
      if (id('confirm-erase').returnValue === 'yes') page.attempt(() => this.erase());
    });
  }

  show({ catalogue, history, outside }) {
    const select = id('items-category');
    const names = (catalogue?.categories ?? []).map(({ name }) => name);
    if (select.dataset.names !== names.join('\n')) {
      select.dataset.names = names.join('\n');
      select.replaceChildren(new Option('All categories', ''), ...names.map((name) => new Option(name, name)));
    }
    id('history-count').textContent = !history ? 'Nothing yet.'
      : times(history, 'item') + (outside ? `; ${number(outside)} of them are not in the catalogue (any more) and are never sent` : '');
    id('erase').hidden = !history && !this.page.state.unmatched;
  }

  async refresh() {
    await Promise.all([this.search(), this.list()]);
  }

  async search() {
    const query = new URLSearchParams({ search: id('search').value, category: id('items-category').value });
    const asked = this.asked = query.toString();
    const { found, items } = await call('GET', `items?${query}`);
    if (asked !== this.asked) return; // a later question has been answered already
    id('found').textContent = found === 0 ? 'No item in the catalogue has that name.'
      : found > items.length ? `${times(found, 'item')}; here are the first ${items.length}.` : times(found, 'item');
    id('items').replaceChildren(...items.map((item) => element('li', {}, this.tile(item))));
  }

  tile({ id: item, title, seen }) {
    const button = element('button', { type: 'button', className: 'tile' }, title);
    button.setAttribute('aria-pressed', String(seen));
    onClick(button, () => this.page.attempt(() => this.mark(item, button.getAttribute('aria-pressed') !== 'true')));
    button.dataset.item = item;
    return button;
  }

  async mark(item, seen) {
    this.page.show(await call('POST', 'history', { item, seen }));
    for (const button of id('items').querySelectorAll('.tile')) {
      if (button.dataset.item === item) button.setAttribute('aria-pressed', String(seen));
    }
    await this.list();
  }

  async list() {
    const { items, unmatched } = await call('GET', 'history');
    const shown = this.all ? items : items.slice(0, SHOWN);
    id('history').replaceChildren(...shown.map((seen) => {
      const remove = element('button', { type: 'button', className: 'plain' }, 'Remove');
      remove.setAttribute('aria-label', `Remove ${seen.title}`);
      onClick(remove, () => this.page.attempt(async () => {
        await this.mark(seen.id, false);
        id('history-title').tabIndex = -1; // the button is gone; keep the keyboard near
        id('history-title').focus();
      }));
      return element('li', {}, element('span', {}, seen.title + (seen.known ? '' : ' (not in the catalogue)')), remove);
    }));
    id('show-all').hidden = items.length <= SHOWN;
    id('show-all').textContent = this.all ? 'Show fewer' : `Show all ${number(items.length)}`;
    id('unmatched').hidden = !unmatched.length;
    id('unmatched').querySelector('summary').textContent = `${times(unmatched.length, 'title')} not in the catalogue`;
    id('unmatched').querySelector('ul').replaceChildren(...unmatched.slice(0, 200).map((title) => element('li', {}, title)));
  }

  async importFile() {
    const [file] = id('file').files;
    if (!file) return;
    id('imported').replaceChildren(`Reading ${file.name} …`);
    try {
      const result = await call('POST', 'import', file);
      this.page.show(result.state);
      id('imported').replaceChildren(...this.summary(result));
      await this.refresh();
    } catch (error) {
      id('imported').replaceChildren();
      throw error;
    } finally {
      id('file').value = '';
    }
  }

  summary({ read, added, already, unknown, ambiguous, examples }) {
    const words = [`${times(read, 'title')} read: ${times(added, 'item')} added`];
    if (already) words.push(`${number(already)} already there`);
    if (unknown) words.push(`${number(unknown)} not in the catalogue`);
    if (ambiguous) words.push(`${number(ambiguous)} matching several items`);
    const shown = [element('p', {}, `${words.join(', ')}.`)];
    if (!added && !already) shown.push(element('p', {}, 'No title matches the catalogue. Your history has not changed.'));
    if (examples.length) {
      shown.push(element('details', {}, element('summary', {}, 'Titles without a match'),
        element('ul', {}, ...examples.map((title) => element('li', {}, title)))));
    }
    return shown;
  }

  async erase() {
    this.page.show(await call('DELETE', 'history'));
    await this.refresh();
    this.page.showStatus('Your history has been erased from this device.');
  }
}
