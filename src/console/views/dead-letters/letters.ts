import { api, type ListPage, type Schemas } from "../../api/client.ts";

export type Letter = Schemas["ListedDeadLetter"];

export interface Place {
  readonly appId: string;
  readonly subscriptionId: string;
}

/** Filters for the dead letters of one subscription, sent as query parameters of the API. */
export interface Scope {
  readonly type?: string;
  readonly from?: string;
  readonly to?: string;
}

/** Filters for the dead letters of all apps. */
export interface Selection extends Scope {
  readonly appId?: string;
  readonly channel?: string;
  readonly subscriptionId?: string;
}

/** Maximum number of dead letters to load for grouping. The limit is low, because each one contains its whole event. */
export const MAX_LOADED = 500;
const PAGE = 100;

/** Loads the newest dead letters that match the filters, and the number of all matching ones. The newest come first. */
export async function loadLetters(
  selection: Selection,
  signal: AbortSignal,
): Promise<{ readonly letters: readonly Letter[]; readonly total: number }> {
  const letters = new Map<string, Letter>();
  let page: ListPage<Letter>;
  let cursor: string | undefined;
  do {
    const query = { ...selection, limit: PAGE, ...(cursor !== undefined && { cursor }) };
    page = await api.list("/dead-letters", { query, signal });
    for (const one of page.rows) letters.set(one.id, one);
    cursor = page.next;
  } while (cursor !== undefined && letters.size < MAX_LOADED);
  return { letters: [...letters.values()], total: page.total };
}

export interface Group {
  readonly key: string;
  readonly appId: string;
  readonly subscriptionId: string;
  readonly reason: string;
  readonly type: string;
  /** Dead letters of the group, newest first. */
  readonly letters: readonly Letter[];
  readonly firstAt: string;
  readonly lastAt: string;
}

/** Groups dead letters by subscription, reason and type. The group with the latest dead letter comes first. */
export function groupsOf(letters: readonly Letter[]): readonly Group[] {
  const byCause = Map.groupBy(letters, ({ subscriptionId, reason, type }) =>
    [subscriptionId, reason, type].join("~"),
  );
  return [...byCause].flatMap(([key, inside]) => {
    const [newest] = inside;
    const oldest = inside.at(-1);
    if (newest === undefined || oldest === undefined) return [];
    const { appId, subscriptionId, reason, type, createdAt: lastAt } = newest;
    return [{ key, appId, subscriptionId, reason, type, letters: inside, firstAt: oldest.createdAt, lastAt }];
  });
}

/** Dead letters to send again: all that match filters, or those with the given ids. */
export type Target =
  | { readonly is: "scope"; readonly scope: Scope }
  | { readonly is: "letters"; readonly ids: readonly string[] };

export async function countOf(place: Place, target: Target, signal: AbortSignal): Promise<number> {
  if (target.is === "letters") return target.ids.length;
  const { matched } = await redriveMany(place, { ...target.scope, dryRun: true }, signal);
  return matched;
}

/**
 * Sends dead letters to their handler again. Each one is removed from the list, and reappears if the handler rejects it for another day.
 */
export async function sendAgain(
  place: Place,
  target: Target,
  options: { readonly signal: AbortSignal; readonly onProgress: (sent: number) => void },
): Promise<number> {
  const { signal, onProgress } = options;
  let sent = 0;
  if (target.is === "letters") {
    for (const deadLetterId of target.ids) {
      if (signal.aborted) break;
      await api.post("/apps/{appId}/subscriptions/{subscriptionId}/dead-letters/{deadLetterId}/redrive", {
        path: { ...place, deadLetterId },
        body: {},
        signal,
      });
      onProgress(++sent);
    }
    return sent;
  }
  while (!signal.aborted) {
    const { matched, redriven } = await redriveMany(place, { ...target.scope, limit: BATCH }, signal);
    sent += redriven;
    onProgress(sent);
    if (redriven === 0 || redriven >= matched) break;
  }
  return sent;
}

/** Number of dead letters per request. Several small requests let the page show progress and let the user stop. */
const BATCH = 200;

const redriveMany = (
  place: Place,
  body: Scope & { readonly dryRun?: boolean; readonly limit?: number },
  signal: AbortSignal,
) =>
  api.post("/apps/{appId}/subscriptions/{subscriptionId}/dead-letters/redrive", {
    path: { ...place },
    body,
    signal,
  });

export const pathOf = ({ appId, subscriptionId }: Place): string =>
  `/apps/${encodeURIComponent(appId)}/subscriptions/${encodeURIComponent(subscriptionId)}/dead-letters`;
