/** An event as the list answers it; the sender's extensions stand beside what is named. */
export interface Event {
  readonly id: string;
  readonly type: string;
  readonly source: string;
  readonly topic: string;
  readonly entryId: string;
  readonly data?: unknown;
  readonly data_base64?: string;
}

/** A part of a list, and how long it is. */
interface Part<Row> {
  readonly rows: readonly Row[];
  readonly total: number;
}

export interface Range {
  readonly from?: string;
  readonly to?: string;
}

/** A part of the list of the API, which is in order of time. */
export type Load = (
  query: Range & { readonly limit: number; readonly offset: number },
  signal: AbortSignal,
) => Promise<Part<Event>>;

/** How far into a list the API looks, and counts between times. */
const MAX_COUNTED = 10_000;
/** Parts of the list hold about so many events. */
const AIM = 5_000;

/** A part of the list between two times, of fewer events than the API can look through. */
interface Slice {
  readonly range: Range;
  readonly count: number;
  /** Events that are newer than its own. */
  readonly newer: number;
}

/**
 * The events of an app, the newest first, by their place in the list. The API answers the oldest first and looks 10,000 events far: a
 * longer list is read in slices of time, which are measured as the reader comes to them.
 */
export function createTimeline(
  load: Load,
  range: Range,
): (page: { readonly limit: number; readonly offset: number }, signal: AbortSignal) => Promise<Part<Event>> {
  const slices: Slice[] = [];
  /** Counted when it was opened; undefined: more than is counted between times. */
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

  /** Measures one slice more, further back. */
  async function extend(signal: AbortSignal): Promise<void> {
    for (;;) {
      const startMs = Math.max(lowestMs, endMs - spanMs);
      // The clock of Redis may be ahead of this machine's: the newest slice is open.
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
    // One at a time: each goes on from where the one before has ended.
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

/** The newest first. An answer may end early when its events are large. */
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
    // What was removed meanwhile is not there, however often one asks.
    if (found.size === before) break;
  }
  return [...found.values()].reverse();
}

/** Where it stands, as one text: a topic has no white space. */
export const placeOf = ({ topic, entryId }: Pick<Event, "topic" | "entryId">): string =>
  `${topic}/${entryId}`;

/** When it was appended, by the clock of Redis. */
export const timeOf = ({ entryId }: Pick<Event, "entryId">): number => Number.parseInt(entryId, 10);

/** The channel's uid has no dot, nor have ids. */
export const channelOf = ({ topic }: Pick<Event, "topic">, appId: string): string =>
  topic.split(`.${appId}.`)[1]?.split(".")[0] ?? "";
