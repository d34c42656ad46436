// The page: one state from the hub, shown by four parts.

import { HubError, call, takeSecret, useService } from './calls.js';
import { Choices } from './choices.js';
import { element, epsilon, id, number, onClick, times, when } from './elements.js';
import { History } from './history.js';
import { Offer } from './offer.js';
import { Release } from './release.js';
import { Rows } from './rows.js';

class Page {
  constructor() {
    this.history = new History(this);
    this.choices = new Choices(this);
    this.release = new Release(this);
    this.offer = new Offer(this);
    this.rows = new Rows(this);
    id('limits').addEventListener('submit', (event) => {
      event.preventDefault();
      this.attempt(() => this.saveLimits());
    });
    onClick(id('new-client'), () => this.attempt(() => this.replaceClient()));
    onClick(id('fetch-catalogue'), () => this.attempt(() => this.fetchCatalogue()));
    id('services').addEventListener('change', () => this.attempt(() => this.open(id('services').value)));
    addEventListener('hashchange', () => takeSecret() && this.start());
  }

  async start() {
    if (!takeSecret()) {
      this.showError('Open this page with the address that the hub printed when it started: it ends in “#secret=…”.');
      return;
    }
    await this.attempt(async () => {
      const { services } = await call('GET', '');
      id('services').replaceChildren(...services.map(({ name }) => new Option(name, name)));
      id('services-holder').hidden = services.length < 2;
      await this.open(services[0].name);
    });
  }

  async open(service) {
    useService(service);
    const state = await call('GET', 'state');
    id('rows').replaceChildren();
    this.show(state);
    id('body').hidden = false;
    // The catalogue is public and always fetched whole: asking for it reveals nothing.
    // It lists the items itself; listing them twice would take them from under the keyboard.
    if (state.fetch) await this.fetchCatalogue();
    else if (state.catalogue) await this.history.refresh();
  }

  // Runs work that may fail; shows why and leaves everything as it was.
  async attempt(work) {
    this.showError('');
    this.showStatus('');
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof HubError)) throw error;
      this.showError(error.message);
      return undefined;
    }
  }

  showError(text) {
    id('message').textContent = text;
    id('message').hidden = !text;
    if (text) {
      this.showStatus('');
      id('message').scrollIntoView({ block: 'nearest' });
    }
  }

  showStatus(text) {
    id('status').textContent = text;
  }

  show(state) {
    this.state = state;
    const { totals, server, catalogue } = state;
    id('where').textContent = server ? `for ${server.recommender} at ${new URL(server.url).host}` : 'no server: nothing can be sent';
    id('total').hidden = false;
    id('total').textContent = `${epsilon(totals.epsilon)} spent of ${number(totals.limit)}`;
    id('total').classList.toggle('open', totals.openly.length > 0);
    id('client-now').textContent = state.client;
    for (const [field, value] of [['limit', totals.limit], ['threshold', state.threshold]]) {
      if (document.activeElement !== id(field)) id(field).value = value;
    }
    id('about-catalogue').textContent = catalogue
      ? `The catalogue has ${times(catalogue.items, 'item')} in ${times(catalogue.categories.length, 'category', 'categories')}; it came from ${catalogue.source} on ${when(catalogue.fetched)}.`
      : 'There is no catalogue yet.';
    id('fetch-catalogue').hidden = !server;
    for (const part of ['seen', 'choose', 'recommendations']) id(part).hidden = !catalogue;
    this.history.show(state);
    this.choices.show(state);
    this.release.show(state);
    this.rows.show(state);
    this.offer.show(state);
    id('by-service').hidden = totals.services.length < 2;
    id('by-service').replaceChildren(...totals.services.map(({ name, lists, epsilon: spent }) => element('li', {},
      element('span', {}, name), `${epsilon(spent)} in ${times(lists, 'list')}`)));
  }

  async fetchCatalogue() {
    const { rematched, offered, state } = await call('POST', 'catalogue');
    this.show(state);
    await this.history.refresh();
    if (offered) this.showStatus('The server offers another catalogue. Look at what is different.');
    else this.showStatus(`The catalogue is up to date.${rematched ? ` ${times(rematched, 'title')} of your imports could be matched now.` : ''}`);
  }

  async saveLimits() {
    this.show(await call('PUT', 'limits', {
      limit: id('limit').valueAsNumber, threshold: id('threshold').valueAsNumber,
    }));
    this.showStatus('Saved.');
  }

  async replaceClient() {
    const { withdrawn, problem, state } = await call('POST', 'client');
    this.show(state);
    if (withdrawn) this.showStatus('You have another id now. The profile under the old one has been emptied.');
    else this.showError(`You have another id now, but the profile under the old one is still there. ${problem}`);
  }
}

new Page().start();
