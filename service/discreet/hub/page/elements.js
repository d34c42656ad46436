// Small things that every part of the page uses.

export const id = (name) => document.getElementById(name);

// element('li', { className: 'x' }, 'text', child)
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export const times = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

const whole = new Intl.NumberFormat('en-GB');
export const number = (value) => whole.format(value);

const fine = new Intl.NumberFormat('en-GB', { maximumSignificantDigits: 3 });
export const epsilon = (value) => `ε ${fine.format(value)}`;

const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
export const when = (text) => moment.format(new Date(text));

// Do something on a click, once at a time; the button shows that it is busy.
export function onClick(button, work) {
  button.addEventListener('click', async () => {
    if (button.getAttribute('aria-busy') === 'true') return;
    button.setAttribute('aria-busy', 'true');
    try {
      await work();
    } finally {
      button.removeAttribute('aria-busy');
    }
  });
}
