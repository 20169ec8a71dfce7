import { PollUpstream, type View } from "../support/poll-upstream.ts";
import { startStreamServer } from "../support/stream-server.ts";

/** A server of numbered events, with the settings of a channel that reads it. */
export interface Feed extends AsyncDisposable {
  readonly uid: string;
  readonly kind: "sse" | "polling";
  readonly config: object;
  readonly make: (count: number) => void;
  /** Returns the numbers of all events so far, in order. */
  readonly numbers: () => readonly number[];
  /** Returns the number of an event from its data. */
  readonly numberOf: (data: unknown) => number;
}

/** Number of rows with the same timestamp. */
const ROWS_AT_ONCE = 5;
/** Minimum poll interval of a channel. */
const INTERVAL_SECONDS = 5;

/** Tables that differ in discriminator and pagination. A page has three rows. */
const TABLES: readonly {
  readonly view: Partial<View>;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly config: object;
}[] = [
  {
    view: { by: "at", paging: "cursorToken" },
    path: "/rows",
    query: { since: "{{cursor}}" },
    config: {
      discriminator: { by: "timestamp", path: "$.at" },
      pagination: { by: "cursorToken", path: "$.next", name: "token" },
    },
  },
  {
    view: { by: "seq", paging: "linkHeader", isExclusive: true },
    path: "/rows",
    query: { since: "{{cursor}}" },
    config: { discriminator: { by: "sequence", path: "$.seq" }, pagination: { by: "linkHeader" } },
  },
  {
    view: { by: "seq", paging: "nextUrl", isExclusive: true, order: "descending" },
    path: "/rows",
    query: { since: "{{cursor}}" },
    config: {
      discriminator: { by: "sequence", path: "$.seq" },
      pagination: { by: "nextUrlPath", path: "$.next" },
      order: "descending",
    },
  },
  {
    view: {},
    path: "/changes",
    query: { token: "{{cursor}}" },
    config: {
      discriminator: { by: "token", path: "$.delta" },
      pagination: { by: "cursorToken", path: "$.next", name: "token" },
    },
  },
  { view: { by: "seq" }, path: "/rows", query: {}, config: { discriminator: { by: "seenSet" } } },
];

/** Starts `count` event streams and `count` tables. Every second one has no dedupe, so its order depends only on the cursor. */
export function startFeeds(count: number): Promise<readonly Feed[]> {
  return Promise.all(
    Array.from({ length: count }, (_, i) => {
      const common = { run: "always", ...(i % 2 === 0 ? {} : { dedupe: { windowSeconds: 0 } }) };
      return [
        startStream(`stream-${i}`, common),
        startTable(`table-${i}`, TABLES[i % TABLES.length], common),
      ];
    }).flat(),
  );
}

async function startStream(uid: string, common: object): Promise<Feed> {
  const server = await startStreamServer();
  let made = 0;
  return {
    uid,
    kind: "sse",
    config: { ...common, url: server.url, reconnect: { initialMs: 100, maxMs: 500 } },
    make(count) {
      made += count;
      server.make(count);
    },
    numbers: () => Array.from({ length: made }, (_, n) => n),
    numberOf: (data) => (data as { readonly n: number }).n,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

async function startTable(
  uid: string,
  table: (typeof TABLES)[number] | undefined,
  common: object,
): Promise<Feed> {
  if (table === undefined) throw new Error("There is no such table.");
  const upstream = await PollUpstream.start();
  upstream.clear(table.view);
  return {
    uid,
    kind: "polling",
    config: {
      ...common,
      ...table.config,
      request: { url: `${upstream.origin}${table.path}`, query: table.query },
      itemsPath: "$.rows",
      itemId: "$.id",
      startAt: "earliest",
      schedule: { intervalSeconds: INTERVAL_SECONDS },
      retry: { attempts: 1, initialMs: 50 },
    },
    make(count) {
      for (let i = 0; i < count; i++) {
        if (upstream.changes.length % ROWS_AT_ONCE === 0) upstream.nowMs += 1_000;
        upstream.insert();
      }
    },
    numbers: () => upstream.changes.map(({ seq }) => seq),
    numberOf: (data) => (data as { readonly seq: number }).seq,
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  };
}
