/** Event as listed by the API. It can contain additional attributes that the sender has set. */
export interface Event {
  readonly id: string;
  readonly type: string;
  readonly source: string;
  readonly topic: string;
  readonly entryId: string;
  readonly data?: unknown;
  readonly data_base64?: string;
}

interface Part<Row> {
  readonly rows: readonly Row[];
  readonly total: number;
}

export interface Range {
  readonly from?: string;
  readonly to?: string;
}

/** Loads a page of events from the API, which lists the oldest events first. */
export type Load = (
  query: Range & { readonly limit: number; readonly offset: number },
  signal: AbortSignal,
) => Promise<Part<Event>>;

/** Maximum offset that the API accepts. Within a time range, the API also counts only this far. */
const MAX_COUNTED = 10_000;
/** Target number of events in a slice. */
const AIM = 5_000;

/** Time range with few enough events that the API can reach all of them by offset. */
interface Slice {
  readonly range: Range;
  readonly count: number;
  /** Number of events newer than this slice. */
  readonly newer: number;
}

/**
 * Reads an app's events by index, newest first. The API limits the offset to 10,000, so longer lists are read in time
 * ranges, which are added while the user scrolls.
 */
export function createTimeline(
  load: Load,
  range: Range,
): (page: { readonly limit: number; readonly offset: number }, signal: AbortSignal) => Promise<Part<Event>> {
  const slices: Slice[] = [];
  /** Number of events when the list was loaded, or `undefined` if the API did not count all of them. */
  let total: number | undefined;
  let isComplete = false;
  let endMs = 0;
  let lowestMs = 0;
  let spanMs = 1;
  let measuring: Promise<void> | undefined;

  const measured = (): number => slices.reduce((sum, { count }) => sum + count, 0);

  async function begin(signal: AbortSignal): Promise<void> {
    const first = await load({ ...range, limit: 1, offset: 0 }, signal);
    const isWhole = range.from === undefined && range.to === undefined;
    const [oldest] = first.rows;
    if (first.total < MAX_COUNTED || oldest === undefined) {
      slices.push({ range, count: first.total, newer: 0 });
      total = first.total;
      isComplete = true;
      return;
    }
    total = isWhole ? first.total : undefined;
    endMs = range.to === undefined ? Date.now() : Date.parse(range.to);
    lowestMs = Math.min(timeOf(oldest), endMs - 1);
    spanMs = Math.max(1, Math.ceil(((endMs - lowestMs) * AIM) / first.total));
  }

  /** Determines the next older slice. */
  async function extend(signal: AbortSignal): Promise<void> {
    for (;;) {
      const startMs = Math.max(lowestMs, endMs - spanMs);
      // The newest time range stays open, because the clock of Redis may be ahead of this machine's clock.
      const isOpen = slices.length === 0 && range.to === undefined;
      const between = {
        from: new Date(startMs).toISOString(),
        ...(!isOpen && { to: new Date(endMs).toISOString() }),
      };
      const { total: count } = await load({ ...between, limit: 1, offset: 0 }, signal);
      if (count >= MAX_COUNTED && endMs - startMs > 1) {
        spanMs = Math.max(1, Math.floor((endMs - startMs) / 2));
        continue;
      }
      slices.push({ range: between, count, newer: measured() });
      endMs = startMs;
      if (count < AIM / 2) spanMs *= 2;
      isComplete = endMs <= lowestMs;
      return;
    }
  }

  async function measureTo(last: number, signal: AbortSignal): Promise<void> {
    if (slices.length === 0 && endMs === 0) await begin(signal);
    while (!isComplete && measured() < last) await extend(signal);
  }

  return async ({ limit, offset }, signal) => {
    // Wait for the previous call, because each time range starts where the previous one ends.
    const before = measuring ?? Promise.resolve();
    const mine = before.catch(() => {}).then(() => measureTo(offset + limit, signal));
    measuring = mine;
    await mine;
    const rows: Event[] = [];
    for (const { range: between, count, newer } of slices) {
      const first = Math.max(0, offset - newer);
      const last = Math.min(count, offset + limit - newer);
      if (first < last) rows.push(...(await readSlice(load, between, count - last, last - first, signal)));
    }
    const known = measured();
    return { rows, total: isComplete ? known : Math.max(total ?? 0, known + 1) };
  };
}

/** Loads events, newest first. Repeats the request if the events are large, because the API then returns fewer than requested. */
async function readSlice(
  load: Load,
  range: Range,
  offset: number,
  count: number,
  signal: AbortSignal,
): Promise<readonly Event[]> {
  const found = new Map<string, Event>();
  while (found.size < count) {
    const page = { limit: count - found.size, offset: offset + found.size };
    const { rows } = await load({ ...range, ...page }, signal);
    const before = found.size;
    for (const event of rows) found.set(placeOf(event), event);
    // Stop if a request returns no new event, because the missing events were deleted meanwhile.
    if (found.size === before) break;
  }
  return [...found.values()].reverse();
}

/** Joins topic and entry id with a slash. Entry ids contain no slash, so the last slash separates both. */
export const placeOf = ({ topic, entryId }: Pick<Event, "topic" | "entryId">): string =>
  `${topic}/${entryId}`;

/** Returns the time at which Redis stored the event, from the entry id. */
export const timeOf = ({ entryId }: Pick<Event, "entryId">): number => Number.parseInt(entryId, 10);

/** Extracts the channel uid from a topic name. This works because uids and ids contain no dots. */
export const channelOf = ({ topic }: Pick<Event, "topic">, appId: string): string =>
  topic.split(`.${appId}.`)[1]?.split(".")[0] ?? "";
