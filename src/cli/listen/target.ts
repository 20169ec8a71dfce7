import { InvalidArgumentError } from "commander";

/**
 * Returns the URL that a user means: `3000` and `:3000` are ports of this machine, and `localhost:3000/events` lacks its scheme.
 *
 * @throws InvalidArgumentError if the text is not an http or https address
 */
export function parseTarget(text: string): string {
  const [port, path = ""] = /^:?(\d+)(\/.*)?$/.exec(text)?.slice(1) ?? [];
  const isWithoutScheme = /^(?:[\w.-]+|\[[\da-f:]+\]):\d+(?:\/|$)/i.test(text);
  const url =
    port !== undefined ? `http://localhost:${port}${path}` : isWithoutScheme ? `http://${text}` : text;
  if (URL.canParse(url) && port !== "0" && /^https?:$/.test(new URL(url).protocol)) return url;
  throw new InvalidArgumentError(
    "must be an http or https URL such as http://localhost:3000/events, or a port from 1 to 65535",
  );
}
