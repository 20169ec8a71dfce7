import { LRUCache } from "lru-cache";
import { UnavailableError } from "../../lib/errors.ts";
import { upToEntries } from "../../lib/up-to-entries.ts";
import type { KeySource } from "./key-source.ts";
import { type PublicKey, parsePublicKeys } from "./parse-keys.ts";

/**
 * Fetches an https URL that the settings name or pin. Follows no redirects, and limits the time to a few seconds and the size to a
 * few hundred KiB.
 *
 * @throws if the fetch fails
 */
export type FetchPinned = (url: string, options: { readonly signal: AbortSignal }) => Promise<Buffer>;

const HOUR_MS = 3_600_000;
const FRESH_MS = HOUR_MS;
/** Maximum age of cached keys that are used while they cannot be fetched again. */
const STALE_MS = 24 * HOUR_MS;
/** Pause after a failed fetch, and between two fetches of keys that did not match. */
const RETRY_PAUSE_MS = 30_000;
/** Maximum number of cached URLs per organization. */
const MAX_ADDRESSES = 200;
/** Default limit on concurrent fetches per organization, because requests can name any number of URLs to fetch. */
export const DEFAULT_KEY_FETCHES = 16;
/** Concurrent fetches of an organization without a limit: bounded by the sockets and memory of the process. */
const MOST_KEY_FETCHES = 256;
const MAX_ORGANIZATIONS = 10_000;

interface Known {
  readonly keys: readonly PublicKey[];
  readonly atMs: number;
}

/**
 * Creates a key cache per organization, so that slow or numerous key URLs of one organization do not affect another.
 *
 * @param fetchesOf returns the maximum number of concurrent fetches of an organization; `undefined` for no limit of its own
 */
export function createKeyCaches(
  fetchPinned: FetchPinned,
  fetchesOf: (organizationId: string) => number | undefined = () => DEFAULT_KEY_FETCHES,
): (organizationId: string) => KeySource {
  const caches = new LRUCache<string, KeySource>({
    ...upToEntries(MAX_ORGANIZATIONS),
    memoMethod: (organizationId) =>
      createKeyCache(fetchPinned, () => fetchesOf(organizationId) ?? MOST_KEY_FETCHES),
  });
  // Create the cache on first use: most organizations have no sender whose keys are fetched.
  return (organizationId) => ({
    get: (url, nowMs) => caches.memo(organizationId).get(url, nowMs),
    renew: (url, nowMs) => caches.memo(organizationId).renew(url, nowMs),
  });
}

/**
 * Caches keys by URL for one hour. Concurrent requests share one fetch, and a failed fetch is not repeated for 30 seconds. The
 * current time is taken from the requests.
 */
function createKeyCache(fetchPinned: FetchPinned, mostFetches: () => number): KeySource {
  const known = new LRUCache<string, Known>(upToEntries(MAX_ADDRESSES));
  // A separate cache, so that URLs without keys cannot evict URLs with keys.
  const triedAtMs = new LRUCache<string, number>(upToEntries(MAX_ADDRESSES));
  const fetching = new Map<string, Promise<readonly PublicKey[]>>();

  function fetchOnce(url: string, nowMs: number): Promise<readonly PublicKey[]> {
    const inFlight = fetching.get(url);
    if (inFlight !== undefined) return inFlight;
    if (fetching.size >= mostFetches())
      return Promise.reject(unavailable("the organization has too many key fetches in flight"));
    triedAtMs.set(url, nowMs);
    const started = fetchKeys(url, nowMs).finally(() => fetching.delete(url));
    fetching.set(url, started);
    return started;
  }

  async function fetchKeys(url: string, nowMs: number): Promise<readonly PublicKey[]> {
    let bytes: Buffer;
    try {
      bytes = await fetchPinned(url, { signal: NEVER_ABORTED });
    } catch (cause) {
      throw unavailable("the sender's keys cannot be fetched", cause);
    }
    const keys = parsePublicKeys(bytes.toString("utf8"));
    if (keys === undefined) throw unavailable("the response from the sender's key URL contains no valid key");
    known.set(url, { keys, atMs: nowMs });
    return keys;
  }

  const wasTriedRecently = (url: string, nowMs: number): boolean =>
    Math.abs(nowMs - (triedAtMs.get(url) ?? Number.NEGATIVE_INFINITY)) < RETRY_PAUSE_MS;

  return {
    get(url, nowMs) {
      const at = known.get(url);
      const ageMs = at === undefined ? Number.POSITIVE_INFINITY : nowMs - at.atMs;
      if (at !== undefined && ageMs < FRESH_MS) return at.keys;
      const stale = at !== undefined && ageMs < STALE_MS ? at.keys : undefined;
      if (wasTriedRecently(url, nowMs) && !fetching.has(url)) {
        if (stale !== undefined) return stale;
        throw unavailable("the sender's keys could not be fetched; the next attempt follows shortly");
      }
      const fetched = fetchOnce(url, nowMs);
      return stale === undefined ? fetched : fetched.catch(() => stale);
    },
    async renew(url, nowMs) {
      if (fetching.has(url) || !wasTriedRecently(url, nowMs)) return fetchOnce(url, nowMs);
      const isCurrent = known.get(url)?.atMs === triedAtMs.get(url);
      if (!isCurrent)
        throw unavailable("the sender's keys could not be fetched; the next attempt follows shortly");
      return undefined;
    },
  };
}

const unavailable = (message: string, cause?: unknown): UnavailableError =>
  new UnavailableError(message, { cause, retryAfterSeconds: 5 });

const NEVER_ABORTED = new AbortController().signal;
