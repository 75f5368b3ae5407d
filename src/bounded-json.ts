/** JSON of an outsider, a server or a client: read only when the values in it are few enough to hold. */

/** A response with a hundred choices has a thousand values, a request with ten thousand completions twenty thousand. */
const MOST_VALUES = 500_000;

const [QUOTE, BACKSLASH, COMMA, BRACKET, BRACE] = ['"', '\\', ',', '[', '{'].map((character) =>
  character.charCodeAt(0),
);

/**
 * The value. A text of small values takes many times its own bytes once it is read, so they are counted first.
 * @throws Error for a text that is not JSON, or holds too many values
 */
export function parseJsonWithin(text: string): unknown {
  if (!holdsFewValues(text)) throw new Error(`more than ${MOST_VALUES} values`);
  return JSON.parse(text);
}

function holdsFewValues(text: string): boolean {
  let values = 0;
  let isString = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (isString) {
      if (code === BACKSLASH) at++;
      else if (code === QUOTE) isString = false;
    } else if (code === QUOTE) isString = true;
    else if ((code === COMMA || code === BRACKET || code === BRACE) && ++values > MOST_VALUES) return false;
  }
  return true;
}
