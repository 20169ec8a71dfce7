import { err, ok, type Result, unwrap } from "../../lib/result.ts";

/** Returns whether a URL matches an allowed URL pattern. */
type Pin = (url: string) => boolean;

const LABEL = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?|\*)$/;
const PIN = /^https:\/\/(?<host>[^/?#@:]+)(?<path>\/[^?#]*)(?<query>\?\*)?$/;
const MAX_URL_LENGTH = 4_096;
const MIN_FIXED_LABELS = 2;
/**
 * Matches any single label of a host name. Excludes labels that begin with `s3`, because anyone can create a host such as
 * `<bucket>.s3.amazonaws.com`.
 */
const ANY_LABEL = "(?!s3)[a-z0-9-]{1,63}";
const LITERAL_PATH = /^[A-Za-z0-9._~*/-]+$/;

/**
 * Compiles a pin, which is a pattern `https://host/path` for URLs.
 *
 * In the host, `*` stands for one whole label that does not begin with `s3`. The last two labels must be fixed. In the path,
 * `*` stands for any number of letters, digits, `.`, `_`, `~` and `-`. A path segment may contain only one `*`, because two
 * would allow exponential backtracking. `?*` at the end accepts any query.
 *
 * Only URLs in canonical form match, so that the compared URL is the one that is called. Such a URL has no port, user,
 * fragment, dot segments or other query. Its path contains no percent-encoding.
 */
export function compilePin(text: string): Result<Pin, string> {
  const { host, path, query } = PIN.exec(text)?.groups ?? {};
  if (host === undefined || path === undefined) return err("must be https://host/path");
  const labels = host.split(".");
  if (!labels.every((label) => LABEL.test(label))) return err("must have a valid host name in lower case");
  if (labels.length < MIN_FIXED_LABELS || labels.slice(-MIN_FIXED_LABELS).includes("*")) {
    return err("must not have * in the last two labels of its host");
  }
  if (!LITERAL_PATH.test(path)) return err("must have a path of letters, digits, . _ ~ - / and * only");
  if (path.split("/").some((segment) => segment.split("*").length > 2)) {
    return err("must have at most one * per segment of its path");
  }
  const hostPattern = labels.map((label) => (label === "*" ? ANY_LABEL : RegExp.escape(label))).join("\\.");
  const pathPattern = path.split("*").map(RegExp.escape).join("[A-Za-z0-9._~-]{1,200}");
  const queryPattern = query === undefined ? "" : "\\?[!-~]*";
  const pattern = new RegExp(`^https://${hostPattern}${pathPattern}${queryPattern}$`);
  return ok((url) => url.length <= MAX_URL_LENGTH && isCanonical(url) && pattern.test(url));
}

/**
 * Compiles a function that checks whether a URL matches at least one allowed pattern.
 *
 * @throws Error for patterns that `compilePin` rejects
 */
export function compilePins(texts: readonly string[]): Pin {
  const pins = texts.map((text) => unwrap(compilePin(text), text));
  return (url) => pins.some((isPinned) => isPinned(url));
}

function isCanonical(url: string): boolean {
  const parsed = URL.parse(url);
  return parsed !== null && parsed.href === url && parsed.hash === "";
}
