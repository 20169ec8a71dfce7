import { LRUCache } from "lru-cache";
import { UnavailableError } from "../../lib/errors.ts";
import { upToEntries } from "../../lib/up-to-entries.ts";
import { type Budgets, ownBudgets } from "../../limits/budgets.ts";
import type { KeySource } from "./key-source.ts";
import { type PublicKey, parsePublicKeys } from "./parse-keys.ts";

/**
 * Fetches an https URL that the config contains or allows. Does not follow redirects, and limits the time to a few seconds and the
 * size to a few hundred KiB.
 *
 * @throws Error if the fetch fails
 */
export type FetchPinned = (url: string, options: { readonly signal: AbortSignal }) => Promise<Buffer>;

const HOUR_MS = 3_600_000;
const FRESH_MS = HOUR_MS;
/** Maximum age in ms of cached keys that are still used when fetching new keys fails. */
const STALE_MS = 24 * HOUR_MS;
/** Minimum interval in ms between two fetches of a URL, if the first one failed or returned no matching key. */
const RETRY_PAUSE_MS = 30_000;
/** Maximum number of key URLs per organization in the cache. The least recently used URL is evicted. */
const MAX_ADDRESSES = 200;
/** Default limit on concurrent key fetches per organization. A limit is needed because requests can name any number of key URLs. */
export const DEFAULT_KEY_FETCHES = 16;
/** Limit on concurrent key fetches for an organization without its own limit. It bounds the sockets and memory of the machine. */
const MOST_KEY_FETCHES = 256;
const MAX_ORGANIZATIONS = 10_000;

interface Known {
  readonly keys: readonly PublicKey[];
  readonly atMs: number;
}

/**
 * Creates one key cache per organization, so that slow or numerous key URLs of one organization do not affect others.
 *
 * @param fetchesOf returns an organization's limit on concurrent fetches, or `undefined` for none
 * @param budgets budgets that all processes of this machine share
 */
export function createKeyCaches(
  fetchPinned: FetchPinned,
  fetchesOf: (organizationId: string) => number | undefined = () => DEFAULT_KEY_FETCHES,
  budgets: Budgets = ownBudgets,
): (organizationId: string) => KeySource {
  const places = budgets.open("keyFetches", {
    total: Number.POSITIVE_INFINITY,
    limitOf: (organizationId) => fetchesOf(organizationId) ?? MOST_KEY_FETCHES,
    slice: 0,
  });
  const caches = new LRUCache<string, KeySource>({
    ...upToEntries(MAX_ORGANIZATIONS),
    memoMethod: (organizationId) =>
      createKeyCache(fetchPinned, {
        take: () => places.take(organizationId, 1),
        giveBack: () => places.giveBack(organizationId, 1),
      }),
  });
  // Create each cache on first use, because few organizations need to fetch keys.
  return (organizationId) => ({
    get: (url, nowMs) => caches.memo(organizationId).get(url, nowMs),
    renew: (url, nowMs) => caches.memo(organizationId).renew(url, nowMs),
  });
}

/** The places of one organization for concurrent fetches. */
interface Places {
  readonly take: () => boolean | Promise<boolean>;
  readonly giveBack: () => void;
}

/**
 * Caches the keys of each URL for one hour. Concurrent requests share one fetch, and a failed fetch is not repeated for 30 seconds. All
 * times are arrival times of requests.
 */
function createKeyCache(fetchPinned: FetchPinned, places: Places): KeySource {
  const known = new LRUCache<string, Known>(upToEntries(MAX_ADDRESSES));
  // Cache fetch times separately, so that URLs that returned no keys cannot evict URLs with keys.
  const triedAtMs = new LRUCache<string, number>(upToEntries(MAX_ADDRESSES));
  const fetching = new Map<string, Promise<readonly PublicKey[]>>();

  function fetchOnce(url: string, nowMs: number): Promise<readonly PublicKey[]> {
    const inFlight = fetching.get(url);
    if (inFlight !== undefined) return inFlight;
    const started = fetchInPlace(url, nowMs, places.take()).finally(() => fetching.delete(url));
    fetching.set(url, started);
    return started;
  }

  async function fetchInPlace(
    url: string,
    nowMs: number,
    hasPlace: boolean | Promise<boolean>,
  ): Promise<readonly PublicKey[]> {
    if (!(hasPlace === true || (await hasPlace)))
      throw unavailable("the organization has too many key fetches in flight");
    triedAtMs.set(url, nowMs);
    try {
      return await fetchKeys(url, nowMs);
    } finally {
      places.giveBack();
    }
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
