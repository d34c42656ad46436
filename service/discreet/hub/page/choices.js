// The controls, what they would reveal, and what a list would cost.

import { call } from './calls.js';
import { element, epsilon, id, number, onClick, times } from './elements.js';

const LEVELS = [['no', 'Nothing'], ['perturbed', 'Noisy'], ['all', 'Everything']];
const OVERALL = [...document.querySelectorAll('[name="overall"]')];
const STRENGTH = [...document.querySelectorAll('[name="strength"]')];

export class Choices {
  constructor(page) {
    this.page = page;
    this.queue = Promise.resolve();
    this.waiting = 0;
    for (const control of [...OVERALL, id('by-category')]) control.addEventListener('change', () => this.keep());
    id('own-epsilon').addEventListener('change', () => this.keep());
    for (const control of STRENGTH) {
      control.addEventListener('change', () => {
        if (control.value === 'own' && !id('own-epsilon').value) id('own-epsilon').value = this.page.state.quote.epsilon;
        this.keep();
      });
    }
    id('early').addEventListener('change', () => this.offer(page.state));
    onClick(id('create'), () => page.attempt(() => this.create()));
  }

  // Where the controls are now.
  read() {
    const levels = {};
    for (const group of id('categories').querySelectorAll('fieldset')) {
      levels[group.dataset.category] = group.querySelector('input:checked')?.value ?? 'no';
    }
    const own = STRENGTH.find((control) => control.checked)?.value === 'own';
    return {
      overall: OVERALL.find((control) => control.checked)?.value ?? 'perturbed',
      by_category: id('by-category').checked,
      levels,
      epsilon: own && id('own-epsilon').value ? id('own-epsilon').valueAsNumber : null,
    };
  }

  // Changes are saved one after the other. Until the last is, no list can be created, since its
  // price is not known, and no answer to an earlier one moves the controls.
  async keep() {
    const wanted = this.read();
    this.waiting += 1;
    id('create').disabled = true;
    this.queue = this.queue.then(() => this.page.attempt(() => call('PUT', 'choices', wanted)));
    const kept = await this.queue;
    this.waiting -= 1;
    if (!this.waiting) this.page.show(kept ?? this.page.state);
  }

  show(state) {
    const { choices, catalogue, quote } = state;
    if (!catalogue || this.waiting) return;
    for (const control of OVERALL) control.checked = control.value === choices.overall;
    id('by-category').checked = choices.by_category;
    id('finer').hidden = choices.overall !== 'perturbed';
    for (const name of ['categories', 'finer-hint']) id(name).hidden = !choices.by_category;
    this.listCategories(catalogue.categories, choices);
    for (const control of STRENGTH) control.checked = (control.value === 'own') === (choices.epsilon !== null);
    if (choices.epsilon !== null && document.activeElement !== id('own-epsilon')) id('own-epsilon').value = choices.epsilon;
    id('own-epsilon').disabled = choices.epsilon === null;
    id('strength-now').textContent = `${epsilon(quote.epsilon)}${choices.epsilon === null ? ', automatic' : ', your own'}`;
    id('planned').replaceChildren(...quote.reveals.map((text) => element('li', {}, text)));
    this.offer(state);
  }

  // A category that came after the choice was made is "nothing" until it is chosen for.
  listCategories(categories, { by_category: byCategory, levels }) {
    const holder = id('categories');
    const key = categories.map(({ name, items }) => `${name} ${items}`).join('\n');
    if (holder.dataset.key !== key) {
      holder.dataset.key = key;
      holder.replaceChildren(...categories.map((category, place) => this.control(category, place)));
    }
    for (const group of holder.querySelectorAll('fieldset')) {
      const level = levels[group.dataset.category] ?? (byCategory ? 'no' : 'perturbed');
      for (const input of group.querySelectorAll('input')) input.checked = input.value === level;
    }
  }

  control({ name, items }, place) {
    const group = element('fieldset', { className: 'segments' },
      element('legend', {}, name, element('small', {}, items ? ` ${times(items, 'item')}` : ' no items')),
      ...LEVELS.map(([value, label]) => {
        const input = element('input', { type: 'radio', name: `category-${place}`, value, disabled: !items });
        input.addEventListener('change', () => this.keep());
        return element('label', {}, input, element('span', {}, label));
      }));
    group.dataset.category = name;
    return group;
  }

  offer({ quote, totals, release, threshold, choices }) {
    const free = quote.nano_epsilon === 0;
    id('price').textContent = free ? 'This costs no ε.'
      : `This list costs ${epsilon(quote.epsilon)}. The total after it: ${epsilon(quote.total)} of ${number(totals.limit)}.`;
    id('early-holder').hidden = !quote.early;
    if (!quote.early) id('early').checked = false;
    if (quote.early) {
      id('early-text').textContent = `Only ${number(release.changed)} of ${times(threshold, 'item')} changed since the last list, which can be sent again for free. Create another one anyway.`;
    }
    const button = id('create');
    button.textContent = free
      ? (choices.overall === 'no' || !quote.openly.length ? 'Create empty list' : 'Create exact list, unprotected')
      : `Create noisy list for ${epsilon(quote.epsilon)}`;
    button.disabled = !quote.within_limit || (quote.early && !id('early').checked);
    if (!quote.within_limit) {
      id('price').textContent += ' That is above the limit you set, so it cannot be created. The last list can still be sent.';
    }
  }

  async create() {
    const { quote, release } = this.page.state;
    const state = await call('POST', 'releases', {
      after: release?.number ?? 0, nano_epsilon: quote.nano_epsilon, early: id('early').checked,
    });
    id('early').checked = false;
    this.page.show(state);
    this.page.showStatus(`List created for ${epsilon(state.release.epsilon)}. Nothing has been sent yet.`);
    id('look-title').focus();
  }
}
