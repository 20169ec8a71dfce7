import { api, type ListPage, type Schemas } from "../../api/client.ts";

export type Kept = Schemas["QuarantineRecord"];

/** Filters for the quarantined items of one app, sent as query parameters of the API. */
export interface Scope {
  readonly channelId?: string;
  readonly reason?: Kept["reason"];
  readonly from?: string;
  readonly to?: string;
}

/** Maximum number of items to load for grouping. If there are more, the page says so. */
export const MAX_LOADED = 2_000;
const PAGE = 200;

/** Filters for the items of all apps. */
export interface Selection extends Omit<Scope, "channelId"> {
  readonly appId?: string;
  readonly channel?: string;
}

/** Loads the newest items that match the filters, and the number of all matching ones. The newest come first. */
export async function loadKept(
  selection: Selection,
  signal: AbortSignal,
): Promise<{ readonly kept: readonly Kept[]; readonly total: number }> {
  const kept = new Map<string, Kept>();
  let page: ListPage<Kept>;
  let cursor: string | undefined;
  do {
    const query = { ...selection, limit: PAGE, ...(cursor !== undefined && { cursor }) };
    page = await api.list("/quarantine", { query, signal });
    for (const one of page.rows) kept.set(one.id, one);
    cursor = page.next;
  } while (cursor !== undefined && kept.size < MAX_LOADED);
  return { kept: [...kept.values()], total: page.total };
}

/** Quarantined items of one channel that failed for the same reason in the same event definitions. */
export interface Group {
  readonly key: string;
  readonly appId: string;
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

/** Groups items by app, channel, reason and definition. The group with the latest item comes first. */
export function groupsOf(kept: readonly Kept[]): readonly Group[] {
  return [...Map.groupBy(kept, keyOf)]
    .flatMap(([key, items]) => {
      const [first] = items;
      if (first === undefined) return [];
      const { appId, channelUid, reason, definitions } = first;
      return [
        {
          key,
          appId,
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
const keyOf = ({ appId, channelUid, reason, definitions }: Kept): string =>
  [appId, channelUid, reason, ...definitions].join("~");
