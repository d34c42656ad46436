// The list: beside the history, in words, and the button that sends it.

import { call } from './calls.js';
import { element, epsilon, id, number, onClick, times, when } from './elements.js';

export class Release {
  constructor(page) {
    this.page = page;
    onClick(id('send'), () => page.attempt(() => this.send()));
  }

  show(state) {
    const { release, totals, server } = state;
    id('look').hidden = !release;
    if (!release) return;
    this.compare(release.profile);
    id('release-epsilon').textContent = epsilon(release.epsilon);
    const elsewhere = totals.services.filter(({ name }) => name !== state.service);
    id('total-epsilon').textContent = `${epsilon(totals.epsilon)} in ${times(totals.lists, 'list')}`
      + (elsewhere.length ? `, of which ${epsilon(totals.here.epsilon)} here` : '')
      + (totals.openly.length ? `; sent unprotected at least once: ${totals.openly.join(', ')}` : '');
    id('reveals').replaceChildren(...release.reveals.map((text) => element('li', {}, text)));
    id('client').textContent = state.client;
    id('contents').querySelector('summary').textContent = release.items.length
      ? `The ${times(release.items.length, 'item')} to be sent` : 'Nothing to be sent: an empty list';
    id('contents').querySelector('ul').replaceChildren(...release.items.map(({ title, id: item, seen }) => {
      const line = element('li', {}, element('span', {}, title));
      line.dataset.item = item;
      if (seen) line.append(element('small', {}, 'in your history'));
      return line;
    }));
    this.reasons(release);
    const sent = release.sent && release.current_client;
    id('send').textContent = sent ? 'Send it again, free' : 'Send it';
    id('send').disabled = !server;
    id('send').className = sent ? 'second' : '';
    id('sent').textContent = sent ? `Sent on ${when(release.sent)}.` : server ? 'Not sent yet.' : 'The hub was started without a server.';
  }

  reasons(release) {
    const reasons = [];
    if (release.changed) reasons.push(`${times(release.changed, 'item')} of your history changed`);
    if (!release.same_controls) reasons.push('the controls changed');
    if (!release.same_catalogue) reasons.push('the catalogue changed');
    id('stale').hidden = !reasons.length;
    id('stale').textContent = `Since this list was created, ${reasons.join(' and ')}. It stays as it is until you create another one.`;
  }

  compare(profile) {
    const most = Math.max(1, ...profile.flatMap(({ raw, released }) => [raw, released]));
    const bar = (kind, value) => {
      const fill = element('i', { className: `bar ${kind}` });
      fill.style.width = `${(value / most) * 100}%`;
      return element('td', {}, element('span', { className: 'cell' }, element('span', { className: 'track' }, fill), element('b', {}, number(value))));
    };
    id('profile').tBodies[0].replaceChildren(...profile.map(({ category, raw, released }) => element('tr', {},
      element('th', { scope: 'row' }, category), bar('raw', raw), bar('released', released))));
  }

  async send() {
    this.page.show(await call('POST', `releases/${this.page.state.release.number}/send`));
    this.page.showStatus('Sent, exactly as shown.');
    await this.page.rows.fetch();
  }
}
