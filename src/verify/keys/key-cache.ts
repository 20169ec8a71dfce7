import { LRUCache } from "lru-cache";
import { UnavailableError } from "../../lib/errors.ts";
import { upToEntries } from "../../lib/up-to-entries.ts";
import type { KeySource } from "./key-source.ts";
import { type PublicKey, parsePublicKeys } from "./parse-keys.ts";

/** Fetches what is at an https address, which settings have named or pinned: no redirects, a few seconds, a few hundred KiB. @throws when that does not come */
export type FetchPinned = (url: string, options: { readonly signal: AbortSignal }) => Promise<Buffer>;

const HOUR_MS = 3_600_000;
const FRESH_MS = HOUR_MS;
/** How long keys of before serve where they cannot be fetched again. */
const STALE_MS = 24 * HOUR_MS;
/** After a failure, and between two fetches because keys at hand were not enough. */
const RETRY_PAUSE_MS = 30_000;
/** Of one organization. */
const MAX_ADDRESSES = 200;
/** Of one organization, at a time: who names addresses in requests must not make the gateway call without end. */
export const DEFAULT_KEY_FETCHES = 16;
/** Of one that has no limit: what the sockets and memory of a process bear. */
const MOST_KEY_FETCHES = 256;
const MAX_ORGANIZATIONS = 10_000;

interface Known {
  readonly keys: readonly PublicKey[];
  readonly atMs: number;
}

/**
 * Keys of each organization for itself: neither addresses that hang nor many of them take anything from another one.
 *
 * @param fetchesOf how many of an organization may be under way; undefined: as many as the process bears
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
  // Made with the first fetch: most organizations have no sender whose keys are fetched.
  return (organizationId) => ({
    get: (url, nowMs) => caches.memo(organizationId).get(url, nowMs),
    renew: (url, nowMs) => caches.memo(organizationId).renew(url, nowMs),
  });
}

/**
 * Keys by address, as they were fetched in the last hour. One fetch serves all that wait for it; what failed is not tried
 * again for half a minute. Time is that of the requests that ask.
 */
function createKeyCache(fetchPinned: FetchPinned, mostFetches: () => number): KeySource {
  const known = new LRUCache<string, Known>(upToEntries(MAX_ADDRESSES));
  // Apart: addresses that bring nothing must not push out those that do.
  const triedAtMs = new LRUCache<string, number>(upToEntries(MAX_ADDRESSES));
  const fetching = new Map<string, Promise<readonly PublicKey[]>>();

  function fetchOnce(url: string, nowMs: number): Promise<readonly PublicKey[]> {
    const inFlight = fetching.get(url);
    if (inFlight !== undefined) return inFlight;
    if (fetching.size >= mostFetches())
      return Promise.reject(unavailable("too many keys of the organization are being fetched"));
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
    if (keys === undefined) throw unavailable("what stands where the sender's keys should be is no key");
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
        throw unavailable("the sender's keys could not be fetched a moment ago");
      }
      const fetched = fetchOnce(url, nowMs);
      return stale === undefined ? fetched : fetched.catch(() => stale);
    },
    async renew(url, nowMs) {
      if (fetching.has(url) || !wasTriedRecently(url, nowMs)) return fetchOnce(url, nowMs);
      const isCurrent = known.get(url)?.atMs === triedAtMs.get(url);
      if (!isCurrent) throw unavailable("the sender's keys could not be fetched a moment ago");
      return undefined;
    },
  };
}

const unavailable = (message: string, cause?: unknown): UnavailableError =>
  new UnavailableError(message, { cause, retryAfterSeconds: 5 });

const NEVER_ABORTED = new AbortController().signal;
