import { api, gotList, type Schemas } from "../../api/client.ts";

export type Kept = Schemas["QuarantineRecord"];

/** As the API takes them. */
export interface Scope {
  readonly channelId?: string;
  readonly reason?: Kept["reason"];
  readonly from?: string;
  readonly to?: string;
}

/** The newest that are grouped; of more it is said. */
export const MAX_LOADED = 2_000;
const PAGE = 200;
const AT_ONCE = 3;

/** The newest of what the filters leave, the newest first, and how many there are in all. */
export async function loadKept(
  appId: string,
  scope: Scope,
  signal: AbortSignal,
): Promise<{ readonly kept: readonly Kept[]; readonly total: number }> {
  const load = (offset: number, limit: number) =>
    gotList(
      api.GET("/apps/{appId}/quarantine", {
        params: { path: { appId }, query: { ...scope, limit, offset } },
        signal,
      }),
    );
  const first = await load(0, PAGE);
  const { total } = first;
  if (total <= PAGE) return { kept: [...first.rows].reverse(), total };
  // The list is in order of arrival.
  const start = Math.max(0, total - MAX_LOADED);
  const offsets = Array.from({ length: Math.ceil((total - start) / PAGE) }, (_, page) => start + page * PAGE);
  const kept: Kept[] = [];
  for (let i = 0; i < offsets.length; i += AT_ONCE) {
    const pages = await Promise.all(offsets.slice(i, i + AT_ONCE).map((offset) => load(offset, PAGE)));
    kept.push(...pages.flatMap(({ rows }) => rows));
  }
  // What arrives meanwhile moves nothing, but what goes does.
  return { kept: [...new Map(kept.map((one) => [one.id, one])).values()].reverse(), total };
}

/** What is wrong with many items in the same way. */
export interface Group {
  readonly key: string;
  readonly channelUid: string;
  readonly reason: Kept["reason"];
  /** Types of the definitions that failed; empty: none is named. */
  readonly definitions: readonly string[];
  /** The newest first. */
  readonly items: readonly Kept[];
  readonly arrivals: number;
  readonly firstAt: string;
  readonly lastAt: string;
}

/** By channel, reason and definition; the group that was seen last comes first. */
export function groupsOf(kept: readonly Kept[]): readonly Group[] {
  const byKey = new Map<string, Kept[]>();
  for (const one of kept) {
    const key = keyOf(one);
    const group = byKey.get(key);
    if (group) group.push(one);
    else byKey.set(key, [one]);
  }
  return [...byKey]
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

/** Short, and the same at each look, for the address. */
const keyOf = ({ channelUid, reason, definitions }: Kept): string =>
  [channelUid, reason, ...definitions].join("~");
