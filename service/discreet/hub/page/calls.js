// The page's only way to talk, and only to the device that served it.

const KEPT = 'discreet-hub-secret';
const HEADER = 'X-Discreet-Hub';
const PATIENCE_MS = 120_000;

// The secret comes in the fragment, which is never sent, and stays in this tab.
export function takeSecret() {
  const given = new URLSearchParams(location.hash.slice(1)).get('secret');
  if (given) {
    sessionStorage.setItem(KEPT, given);
    history.replaceState(null, '', location.pathname);
  }
  return Boolean(sessionStorage.getItem(KEPT));
}

export class HubError extends Error {}

let service = '';

// Which service the page is about.
export const useService = (name) => { service = name; };

// `path` is of the service that is shown, or of all of them if it is empty.
// `body` is a file, sent as it is, or anything that JSON can hold.
export async function call(method, path, body) {
  const headers = { [HEADER]: sessionStorage.getItem(KEPT) ?? '' };
  let content = body;
  if (body !== undefined && !(body instanceof Blob)) {
    headers['Content-Type'] = 'application/json';
    content = JSON.stringify(body);
  }
  let answer;
  try {
    const address = path ? `/${encodeURIComponent(service)}/${path}` : '';
    answer = await fetch(`/api/services${address}`, {
      method, headers, body: content, cache: 'no-store', signal: AbortSignal.timeout(PATIENCE_MS),
    });
  } catch {
    throw new HubError('The hub on this device does not answer. Is it running?');
  }
  let found = null;
  try {
    found = await answer.json();
  } catch {
    throw new HubError('The answer of the hub on this device cannot be read.');
  }
  if (!answer.ok) throw new HubError(found.detail);
  return found;
}
