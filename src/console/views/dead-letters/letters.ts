import { api, got, gotList, type Schemas } from "../../api/client.ts";

export type Letter = Schemas["DeadLetter"];

/** Of one subscription. */
export interface Place {
  readonly appId: string;
  readonly subscriptionId: string;
}

/** As the API takes them. */
export interface Scope {
  readonly type?: string;
  readonly from?: string;
  readonly to?: string;
}

/** The newest that are grouped; each comes with its whole event. */
export const MAX_LOADED = 500;
const PAGE = 100;

/** The newest of what the filters leave, the newest first, and how many there are in all. */
export async function loadLetters(
  place: Place,
  scope: Scope,
  signal: AbortSignal,
): Promise<{ readonly letters: readonly Letter[]; readonly total: number }> {
  const load = (offset: number) =>
    gotList(
      api.GET("/apps/{appId}/subscriptions/{subscriptionId}/dead-letters", {
        params: { path: { ...place }, query: { ...scope, limit: PAGE, offset } },
        signal,
      }),
    );
  const { rows, total } = await load(0);
  if (total <= PAGE) return { letters: [...rows].reverse(), total };
  const letters: Letter[] = [];
  for (let offset = Math.max(0, total - MAX_LOADED); offset < total; offset += PAGE)
    letters.push(...(await load(offset)).rows);
  return { letters: [...new Map(letters.map((one) => [one.id, one])).values()].reverse(), total };
}

export interface Group {
  readonly key: string;
  readonly reason: string;
  readonly type: string;
  /** The newest first. */
  readonly letters: readonly Letter[];
  readonly firstAt: string;
  readonly lastAt: string;
}

/** By reason and type; the group that was seen last comes first. */
export function groupsOf(letters: readonly Letter[]): readonly Group[] {
  const byKey = new Map<string, Letter[]>();
  for (const one of letters) {
    const key = `${one.reason}~${one.type}`;
    const group = byKey.get(key);
    if (group) group.push(one);
    else byKey.set(key, [one]);
  }
  return [...byKey].flatMap(([key, inside]) => {
    const [newest] = inside;
    const oldest = inside.at(-1);
    if (newest === undefined || oldest === undefined) return [];
    const { reason, type, createdAt: lastAt } = newest;
    return [{ key, reason, type, letters: inside, firstAt: oldest.createdAt, lastAt }];
  });
}

/** What is sent again: all that filters leave, or some by their ids. */
export type Target =
  | { readonly is: "scope"; readonly scope: Scope }
  | { readonly is: "letters"; readonly ids: readonly string[] };

/** How many would be sent, as the gateway counts them. */
export async function countOf(place: Place, target: Target, signal: AbortSignal): Promise<number> {
  if (target.is === "letters") return target.ids.length;
  const { matched } = await redriveMany(place, { ...target.scope, dryRun: true }, signal);
  return matched;
}

/** Each leaves the list when it is on its way, and comes back where the handler does not take it in another day. */
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
      await got(
        api.POST("/apps/{appId}/subscriptions/{subscriptionId}/dead-letters/{deadLetterId}/redrive", {
          params: { path: { ...place, deadLetterId } },
          body: {},
          signal,
        }),
      );
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

/** So that there is progress to see, and a way to stop. */
const BATCH = 200;

const redriveMany = (
  place: Place,
  body: Scope & { readonly dryRun?: boolean; readonly limit?: number },
  signal: AbortSignal,
) =>
  got(
    api.POST("/apps/{appId}/subscriptions/{subscriptionId}/dead-letters/redrive", {
      params: { path: { ...place } },
      body,
      signal,
    }),
  );

export const pathOf = ({ appId, subscriptionId }: Place): string =>
  `/apps/${encodeURIComponent(appId)}/subscriptions/${encodeURIComponent(subscriptionId)}/dead-letters`;
