import { err, ok, type Result, unwrap } from "../../lib/result.ts";

/** True for the addresses that a pin stands for. */
type Pin = (url: string) => boolean;

const LABEL = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?|\*)$/;
const PIN = /^https:\/\/(?<host>[^/?#@:]+)(?<path>\/[^?#]*)(?<query>\?\*)?$/;
const MAX_URL_LENGTH = 4_096;
const MIN_FIXED_LABELS = 2;
/** None of object storage: before `s3.amazonaws.com` and its like stands the name of anybody's bucket. */
const ANY_LABEL = "(?!s3)[a-z0-9-]{1,63}";
const LITERAL_PATH = /^[A-Za-z0-9._~*/-]+$/;

/**
 * Compiles `https://host/path`. In the host `*` is one whole label that does not begin with `s3`, and the last two are fixed; in the path it is a run of
 * letters, digits, `.`, `_`, `~` and `-`, never a slash, once in a segment: of two, an address could be split between them in so
 * many ways that comparing would take for ever. `?*` at the end is any query. What fits is compared after the URL is
 * parsed, as it will be called: no port, no user, no fragment, no other query, no dot segments and, in the path, no
 * percent-encoding can stand in it.
 */
export function compilePin(text: string): Result<Pin, string> {
  const { host, path, query } = PIN.exec(text)?.groups ?? {};
  if (host === undefined || path === undefined) return err("must be https://host/path");
  const labels = host.split(".");
  if (!labels.every((label) => LABEL.test(label))) return err("has a host that is none, in lower case");
  if (labels.length < MIN_FIXED_LABELS || labels.slice(-MIN_FIXED_LABELS).includes("*")) {
    return err("must fix the last two labels of its host");
  }
  if (!LITERAL_PATH.test(path))
    return err("has a path of other characters than letters, digits, . _ ~ - / and *");
  if (path.split("/").some((segment) => segment.split("*").length > 2)) {
    return err("has more than one * in one segment of its path");
  }
  const hostPattern = labels.map((label) => (label === "*" ? ANY_LABEL : RegExp.escape(label))).join("\\.");
  const pathPattern = path.split("*").map(RegExp.escape).join("[A-Za-z0-9._~-]{1,200}");
  const queryPattern = query === undefined ? "" : "\\?[!-~]*";
  const pattern = new RegExp(`^https://${hostPattern}${pathPattern}${queryPattern}$`);
  return ok((url) => url.length <= MAX_URL_LENGTH && isCanonical(url) && pattern.test(url));
}

/** True for what any of the pins stands for. @throws Error for what `compilePin` refuses */
export function compilePins(texts: readonly string[]): Pin {
  const pins = texts.map((text) => unwrap(compilePin(text), text));
  return (url) => pins.some((isPinned) => isPinned(url));
}

function isCanonical(url: string): boolean {
  const parsed = URL.parse(url);
  return parsed !== null && parsed.href === url && parsed.hash === "";
}
