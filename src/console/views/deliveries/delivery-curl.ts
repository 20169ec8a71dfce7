import { shellQuote } from "../../api/curl.ts";
import { decodeBase64 } from "../../kit/text/base64.ts";

type Values = Readonly<Record<string, string | readonly string[]>>;

interface Sent {
  readonly method: string;
  readonly headers: Values;
  readonly query: Values;
  readonly bodyBase64: string | null;
}

/** Headers that curl sets itself, that a proxy added, or that do not fit the decoded body. */
const OWN_HEADERS =
  /^(accept-encoding|connection|content-encoding|content-length|expect|host|transfer-encoding|x-forwarded-.*)$/i;
/** The gateway replaces secrets in stored headers by this text. */
const HIDDEN = "***";

/**
 * Formats a delivery as a curl command for a POSIX shell, which sends it to `address` again. A body that is not text is
 * encoded in Base64. Headers with a hidden secret are left out.
 */
export function formatDeliveryCurl({ method, headers, query, bodyBase64 }: Sent, address: string): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    [value].flat().map((one) => [name, one] as [string, string]),
  );
  const search = new URLSearchParams(pairs).toString();
  const words = [`curl -sS -X ${method}`, shellQuote(search === "" ? address : `${address}?${search}`)];
  for (const [name, value] of Object.entries(headers))
    for (const one of [value].flat())
      if (!OWN_HEADERS.test(name) && !one.includes(HIDDEN)) words.push(`-H ${shellQuote(`${name}: ${one}`)}`);
  // Otherwise curl says that the body is a form.
  if (!Object.keys(headers).some((name) => /^content-type$/i.test(name))) words.push("-H 'Content-Type:'");
  const text = bodyBase64 === null ? "" : decodeText(bodyBase64);
  if (text === undefined)
    return `printf %s ${shellQuote(bodyBase64 ?? "")} | base64 -d | ${[...words, "--data-binary @-"].join(" \\\n  ")}`;
  if (text !== "") words.push(`--data-raw ${shellQuote(text)}`);
  return words.join(" \\\n  ");
}

/** Returns `undefined` if the body is not UTF-8, or contains a NUL, which a shell cannot pass on. */
function decodeText(base64: string): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(decodeBase64(base64));
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}
