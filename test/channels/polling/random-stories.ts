import fc from "fast-check";
import { expect } from "vitest";
import type { Fault, Paging, PollUpstream, View } from "../../support/poll-upstream.ts";
import { type Config, type Crash, PollRig } from "./support.ts";

/** Maximum delay of a late row. No walk over the pages takes this long. */
const LATE_MS = 60_000;

/** A combination of pagination and discriminator. */
export interface Scheme {
  readonly name: string;
  readonly view: Partial<View>;
  readonly config: Config;
  /** Whether rows may arrive late, with an earlier timestamp or number. */
  readonly takesLate?: boolean;
  readonly takesDeletes?: boolean;
  readonly takesUpdates?: boolean;
  /** The field by which `log` must be sorted. `undefined` if no order is guaranteed. */
  readonly sortedBy?: "at" | "seq";
}

const PAGINATIONS: Readonly<Record<Paging, Config["pagination"]>> = {
  none: undefined,
  linkHeader: { by: "linkHeader" },
  nextUrl: { by: "nextUrlPath", path: "$.next" },
  cursorToken: { by: "cursorToken", path: "$.next", name: "token" },
  offset: { by: "offset", param: "offset", pageSize: 3 },
  page: { by: "page", param: "page" },
};
/** More polls than the pages of a story need, at two pages per poll. */
const MAX_INTERRUPTIONS = 20;
const BY_TOKEN = ["linkHeader", "nextUrl", "cursorToken"] as const;
const COUNTED = ["offset", "page"] as const;
const ORDERS = ["ascending", "descending", "unordered"] as const;

function configOf(path: string, query: Readonly<Record<string, string>>, rest: Partial<Config>): Config {
  return {
    request: { url: `http://127.0.0.1${path}`, query },
    itemsPath: "$.rows",
    itemId: "$.id",
    versionPath: "$.version",
    startAt: "earliest",
    discriminator: { by: "etag" },
    ...rest,
  };
}

export const schemes: readonly Scheme[] = [
  ...ORDERS.flatMap((order) =>
    (["none", ...BY_TOKEN] as const).flatMap((paging): Scheme[] => [
      {
        name: `timestamp ${order} ${paging}`,
        view: { by: "at", order, paging },
        config: configOf(
          "/rows",
          { since: "{{cursor}}" },
          {
            discriminator: { by: "timestamp", path: "$.at", lookBackSeconds: (2 * LATE_MS) / 1000 },
            order,
            pagination: PAGINATIONS[paging],
          },
        ),
        takesLate: true,
        takesDeletes: true,
        takesUpdates: true,
      },
      {
        name: `timestamp, no look-back, in seconds, ${order} ${paging}`,
        view: { by: "at", order, paging, seconds: true },
        config: configOf(
          "/rows",
          { since: "{{cursor}}" },
          {
            discriminator: { by: "timestamp", path: "$.at", format: "epochSeconds" },
            order,
            pagination: PAGINATIONS[paging],
          },
        ),
        takesDeletes: true,
        takesUpdates: true,
        ...(order !== "unordered" && { sortedBy: "at" as const }),
      },
      {
        name: `sequence ${order} ${paging}`,
        view: { by: "seq", order, paging, isExclusive: true },
        config: configOf(
          "/rows",
          { since: "{{cursor}}" },
          {
            discriminator: { by: "sequence", path: "$.seq", lookBack: order === "unordered" ? 1 : 0 },
            order,
            pagination: PAGINATIONS[paging],
          },
        ),
        takesDeletes: true,
        ...(order !== "unordered" && { sortedBy: "seq" as const }),
      },
      {
        name: `sequence with look-back ${order} ${paging}`,
        view: { by: "seq", order, paging },
        config: configOf(
          "/rows",
          { since: "{{cursor}}" },
          {
            discriminator: { by: "sequence", path: "$.seq", lookBack: 100 },
            order,
            pagination: PAGINATIONS[paging],
          },
        ),
        takesLate: true,
        takesDeletes: true,
      },
      {
        name: `seen set ${order} ${paging}`,
        view: { by: order === "descending" ? "at" : "id", order, paging },
        config: configOf(
          "/rows",
          {},
          {
            discriminator: { by: "seenSet" },
            order,
            pagination: PAGINATIONS[paging],
          },
        ),
        takesDeletes: true,
        takesUpdates: true,
      },
    ]),
  ),
  ...BY_TOKEN.map(
    (paging): Scheme => ({
      name: `timestamp descending ${paging}, two pages per poll`,
      view: { by: "at", order: "descending", paging },
      config: configOf(
        "/rows",
        { since: "{{cursor}}" },
        {
          discriminator: { by: "timestamp", path: "$.at" },
          order: "descending",
          pagination: { ...PAGINATIONS[paging], maxPages: 2 } as Config["pagination"],
        },
      ),
      takesDeletes: true,
      takesUpdates: true,
      sortedBy: "at",
    }),
  ),
  ...COUNTED.flatMap((paging): Scheme[] => [
    {
      name: `timestamp ascending ${paging}`,
      view: { by: "at", paging },
      config: configOf(
        "/rows",
        { since: "{{cursor}}" },
        {
          discriminator: { by: "timestamp", path: "$.at" },
          pagination: PAGINATIONS[paging],
        },
      ),
      takesDeletes: true,
      takesUpdates: true,
      sortedBy: "at",
    },
    {
      name: `timestamp with look-back ascending ${paging}`,
      view: { by: "at", paging },
      config: configOf(
        "/rows",
        { since: "{{cursor}}" },
        {
          discriminator: { by: "timestamp", path: "$.at", lookBackSeconds: (2 * LATE_MS) / 1000 },
          pagination: PAGINATIONS[paging],
        },
      ),
      takesLate: true,
      takesDeletes: true,
      takesUpdates: true,
    },
    {
      name: `sequence ascending ${paging}`,
      view: { by: "seq", paging },
      config: configOf(
        "/rows",
        { since: "{{cursor}}" },
        {
          discriminator: { by: "sequence", path: "$.seq" },
          pagination: PAGINATIONS[paging],
        },
      ),
      takesDeletes: true,
      sortedBy: "seq",
    },
    {
      name: `seen set ascending ${paging}`,
      view: { by: "id", paging },
      config: configOf("/rows", {}, { discriminator: { by: "seenSet" }, pagination: PAGINATIONS[paging] }),
      takesDeletes: true,
      takesUpdates: true,
    },
  ]),
  {
    name: "timestamp, the whole table each time",
    view: { by: "at", paging: "cursorToken", showsAll: true },
    config: configOf(
      "/rows",
      {},
      {
        discriminator: { by: "timestamp", path: "$.at", lookBackSeconds: (2 * LATE_MS) / 1000 },
        pagination: PAGINATIONS.cursorToken,
      },
    ),
    takesLate: true,
    takesDeletes: true,
    takesUpdates: true,
  },
  {
    name: "timestamp, conditional",
    view: { by: "at" },
    config: configOf(
      "/rows",
      { since: "{{cursor}}" },
      {
        discriminator: { by: "timestamp", path: "$.at" },
        conditional: true,
      },
    ),
    sortedBy: "at",
  },
  {
    name: "token",
    view: {},
    config: configOf(
      "/changes",
      { token: "{{cursor}}" },
      {
        discriminator: { by: "token", path: "$.delta" },
        pagination: PAGINATIONS.cursorToken,
      },
    ),
    takesUpdates: true,
    sortedBy: "at",
  },
  {
    name: "token, newest first",
    view: { pageSize: 1000 },
    config: configOf(
      "/changes",
      { token: "{{cursor}}" },
      {
        discriminator: { by: "token", path: "$.delta" },
        order: "descending",
      },
    ),
    takesUpdates: true,
  },
  {
    name: "document",
    view: {},
    config: configOf("/document", {}, { discriminator: { by: "etag" } }),
    takesDeletes: true,
    takesUpdates: true,
  },
];

/** The same schemes with pages parsed in another thread: pages over 128 KiB whose `itemsPath` is a query. */
export const largeSchemes: readonly Scheme[] = schemes.map((scheme) => ({
  ...scheme,
  name: `${scheme.name}, read in another thread`,
  view: { ...scheme.view, padding: 140_000 },
  config: { ...scheme.config, itemsPath: "$.rows[*]" },
}));

type Change =
  | { readonly kind: "insert"; readonly rows: number; readonly tick: boolean }
  | { readonly kind: "late"; readonly byMs: number }
  | { readonly kind: "delete" | "update"; readonly nth: number };

interface Poll {
  readonly changes: readonly Change[];
  readonly faults: readonly (Fault["kind"] | Change | undefined)[];
  readonly crashes: readonly Crash[];
}

const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("insert" as const),
      rows: fc.integer({ min: 1, max: 5 }),
      tick: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("late" as const), byMs: fc.integer({ min: 0, max: LATE_MS }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom("delete" as const, "update" as const), nth: fc.nat(20) }),
  },
);
const poll: fc.Arbitrary<Poll> = fc.record({
  changes: fc.array(change, { maxLength: 3 }),
  faults: fc.array(
    fc.oneof(
      { weight: 5, arbitrary: fc.constant(undefined) },
      { weight: 2, arbitrary: change },
      {
        weight: 1,
        arbitrary: fc.constantFrom(
          "status" as const,
          "half" as const,
          "cut" as const,
          "reset" as const,
          "repeat" as const,
        ),
      },
    ),
    { maxLength: 8 },
  ),
  crashes: fc.array(fc.constantFrom(undefined, undefined, undefined, "refused" as const, "died" as const), {
    maxLength: 5,
  }),
});
export interface Story {
  readonly polls: readonly Poll[];
  readonly maxItemsPerPoll: number;
}

/**
 * Rows that are added, changed and deleted between and during polls, calls that fail, and writes that are rejected or have an unknown
 * result.
 */
export const story: fc.Arbitrary<Story> = fc.record({
  polls: fc.array(poll, { minLength: 1, maxLength: 6 }),
  maxItemsPerPoll: fc.constantFrom(2, 5, 1000),
});

/** Plays the story while polling with the scheme. Then expects that each row arrived once and in order. */
export async function live(upstream: PollUpstream, scheme: Scheme, played: Story): Promise<void> {
  upstream.clear(scheme.view);
  const { config } = scheme;
  const url = `${upstream.origin}${new URL(config.request.url).pathname}`;
  const rig = new PollRig({
    config: {
      ...config,
      request: { ...config.request, url },
      maxItemsPerPoll: played.maxItemsPerPoll,
      retry: { attempts: 1 },
    },
    clock: () => upstream.nowMs,
  });
  /** The expected rows by id and version, without those that were deleted or replaced before any poll saw them. */
  const wanted = new Map<string, string>();
  const dataOf = (id: string) => `${id}/${upstream.rows.get(id)?.version}`;
  const isSetOfNewest = config.discriminator.by === "seenSet" && config.order === "descending";
  const isBySequence = scheme.view.by === "seq";
  const held: number[] = [];
  const isChangeLog = url.endsWith("/changes");

  function apply(made: Change): void {
    switch (made.kind) {
      case "insert":
        if (made.tick) upstream.nowMs += 1500;
        for (let i = 0; i < made.rows; i++) {
          const { id } = upstream.insert();
          wanted.set(id, dataOf(id));
        }
        break;
      case "late": {
        if (!scheme.takesLate) return;
        // Assigns a number now that becomes visible together with the next row.
        held.push(upstream.reserve());
        const seq = held.length > 1 ? held.shift() : undefined;
        const { id } = upstream.insert({
          atMs: upstream.nowMs - made.byMs,
          ...(isBySequence && seq !== undefined && { seq }),
        });
        wanted.set(id, dataOf(id));
        break;
      }
      case "delete":
      case "update": {
        const ids = [...upstream.rows.keys()];
        const id = ids[made.nth % Math.max(1, ids.length)];
        if (id === undefined || !(made.kind === "delete" ? scheme.takesDeletes : scheme.takesUpdates)) return;
        if (made.kind === "delete") {
          upstream.delete(id);
          wanted.delete(id);
        } else {
          // In newest-first order, a changed row must come before all others.
          if (isSetOfNewest) upstream.nowMs++;
          upstream.update(id);
          wanted.set(id, dataOf(id));
        }
        break;
      }
      default:
        made satisfies never;
    }
  }

  const faultOf = (
    fault: Poll["faults"][number],
    index: number,
    faults: Poll["faults"],
  ): Fault | undefined => {
    // A page that names itself twice is the last page.
    if (fault === undefined || (fault === "repeat" && faults.indexOf(fault) < index)) return undefined;
    if (typeof fault === "object") return { kind: "do", change: () => apply(fault) };
    if (fault === "status") return { kind: "status", status: 500 };
    return fault === "do" ? undefined : { kind: fault };
  };

  for (const { changes, crashes, faults } of played.polls) {
    for (const made of changes) apply(made);
    upstream.faults = faults.map(faultOf);
    rig.crashes = [...crashes];
    await rig.poll();
    upstream.nowMs += 500;
  }
  upstream.faults = [];
  rig.crashes = [];
  // Polls until the data is stable. If pages are unordered, one more walk confirms the previous one.
  let unchanged = 0;
  for (let quiet = 0; quiet < 2; quiet++) {
    const published = rig.log.length;
    rig.warnings.length = 0;
    expect((await rig.pollAll())?.kind).toBe("done");
    unchanged = rig.log.length === published ? unchanged + 1 : 0;
    // The next poll continues a walk that a limit has interrupted. This never ends if too many items share the time of the cursor.
    if (rig.warnings.includes("page_limit") && unchanged < MAX_INTERRUPTIONS) quiet = -1;
  }

  const ids = rig.log.map(({ id }) => id);
  const doubled = ids.length - new Set(ids).size;
  const lost = [...wanted.values()].filter((id) => !ids.includes(id));
  expect({ lost, doubled, failures: rig.failures, log: ids }).toMatchObject({
    lost: [],
    doubled: 0,
    failures: 0,
  });
  if (scheme.sortedBy !== undefined) {
    const places = rig.log.map(({ data }) => JSON.parse(data)[scheme.sortedBy ?? "seq"] as string | number);
    expect(places).toEqual(places.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
  }
  if (isChangeLog) expect(ids.length).toBe(upstream.changes.length);
}
