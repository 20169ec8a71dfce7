import { api, type Schemas } from "../../api/client.ts";

export type Kept = Schemas["QuarantineRecord"];

/** Filters for quarantined items, sent as query parameters of the API. */
export interface Scope {
  readonly channelId?: string;
  readonly reason?: Kept["reason"];
  readonly from?: string;
  readonly to?: string;
}

/** Maximum number of items to load for grouping. If there are more, the page says so. */
export const MAX_LOADED = 2_000;
const PAGE = 200;
const AT_ONCE = 3;

/** Loads the newest items that match the filters, and the number of all matching ones. The newest come first. */
export async function loadKept(
  appId: string,
  scope: Scope,
  signal: AbortSignal,
): Promise<{ readonly kept: readonly Kept[]; readonly total: number }> {
  const load = (offset: number, limit: number) =>
    api.list("/apps/{appId}/quarantine", { path: { appId }, query: { ...scope, limit, offset }, signal });
  const first = await load(0, PAGE);
  const { total } = first;
  if (total <= PAGE) return { kept: [...first.rows].reverse(), total };
  // Start near the end, because the API lists the oldest items first.
  const start = Math.max(0, total - MAX_LOADED);
  const offsets = Array.from({ length: Math.ceil((total - start) / PAGE) }, (_, page) => start + page * PAGE);
  const kept: Kept[] = [];
  for (let i = 0; i < offsets.length; i += AT_ONCE) {
    const pages = await Promise.all(offsets.slice(i, i + AT_ONCE).map((offset) => load(offset, PAGE)));
    kept.push(...pages.flatMap(({ rows }) => rows));
  }
  // Remove duplicates. Pages overlap if items leave quarantine during the load, because this shifts the offsets.
  return { kept: [...new Map(kept.map((one) => [one.id, one])).values()].reverse(), total };
}

/** Quarantined items of one channel that failed for the same reason in the same event definitions. */
export interface Group {
  readonly key: string;
  readonly channelUid: string;
  readonly reason: Kept["reason"];
  /** Event types of the definitions that failed, or empty if the failure does not concern a definition. */
  readonly definitions: readonly string[];
  /** Items of the group, newest first. */
  readonly items: readonly Kept[];
  readonly arrivals: number;
  readonly firstAt: string;
  readonly lastAt: string;
}

/** Groups items by channel, reason and definition. The group with the latest item comes first. */
export function groupsOf(kept: readonly Kept[]): readonly Group[] {
  return [...Map.groupBy(kept, keyOf)]
    .flatMap(([key, items]) => {
      const [first] = items;
      if (first === undefined) return [];
      const { channelUid, reason, definitions } = first;
      return [
        {
          key,
          channelUid,
          reason,
          definitions,
          items,
          arrivals: items.reduce((sum, { count }) => sum + count, 0),
          firstAt: items.reduce((least, { firstAt }) => (firstAt < least ? firstAt : least), first.firstAt),
          lastAt: items.reduce((most, { lastAt }) => (lastAt > most ? lastAt : most), first.lastAt),
        },
      ];
    })
    .sort((a, b) => (a.lastAt < b.lastAt ? 1 : -1));
}

/** Returns a short key that identifies a group in the URL. */
const keyOf = ({ channelUid, reason, definitions }: Kept): string =>
  [channelUid, reason, ...definitions].join("~");
