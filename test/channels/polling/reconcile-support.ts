import { createPolledSource, polling } from "../../../src/channels/polling/polling.ts";
import type { SourceObservation } from "../../../src/channels/pull/open-run.ts";
import { createSourcePace } from "../../../src/channels/pull/source-pace.ts";
import { createSourceRuns, type SourceRunsDeps } from "../../../src/channels/pull/source-runs.ts";
import type { SourceEnd } from "../../../src/channels/source.ts";
import { setFoundState } from "../../../src/data/channels/channel-states.ts";
import { recordFirstRun } from "../../../src/data/channels/sources.ts";
import { createSourceBus } from "../../../src/gateway/sources.ts";
import type { CompiledChannel } from "../../../src/ingest/compile-channel.ts";
import { dryRun } from "../../../src/resources/apps/sources/dry-run.ts";
import { listEntries } from "../../support/entries.ts";
import { readHere } from "../../support/read-here.ts";
import type { TestSpine } from "../../support/spine.ts";
import type { AnswerServer } from "./answer-server.ts";
import { outbound } from "./support.ts";

export interface ProviderItem {
  readonly id: string;
  readonly type?: string;
  readonly at: string;
  readonly [name: string]: unknown;
}

export interface ReconcileInput {
  readonly webhook?: { readonly config?: object; readonly events?: readonly object[] };
  readonly config?: object;
}

const { signal } = new AbortController();

/** A webhook channel, and a polling channel that finds the events that the webhook missed. */
export async function givenReconciled(
  spine: TestSpine,
  server: AnswerServer,
  { webhook = {}, config = {} }: ReconcileInput = {},
) {
  const hook = { uid: "hook", kind: "webhook", events: [{ type: "e", idPath: "$.id" }], ...webhook };
  const poll = {
    uid: "poll",
    kind: "polling",
    config: {
      run: "always",
      request: { url: `${server.origin}/items` },
      discriminator: { by: "timestamp", path: "$.at" },
      itemsPath: "$.items",
      itemId: "$.id",
      startAt: "earliest",
      reconciles: "hook",
      ...config,
    },
  };
  const app = await spine.install(hook, poll);
  const idOf = (uid: string): string =>
    app.channels.find((channel: { uid: string }) => channel.uid === uid).id;
  const { db } = spine.api.database;
  const numbers = await db
    .selectFrom("channels")
    .select(["uid", "number"])
    .where("appId", "=", app.id)
    .execute();
  const numberOf = (uid: string): number => numbers.find((row) => row.uid === uid)?.number ?? 0;
  const appPath = `/apps/${app.id}`;
  const bus = createSourceBus(spine.redis);
  const seen: SourceObservation[] = [];
  let offsetMs = 0;
  const clock = () => Date.now() + offsetMs;
  const source = createPolledSource({
    outbound,
    clock,
    random: () => 0,
    wait: async () => {},
    readInWorker: readHere(polling),
  });
  const deps: SourceRunsDeps<CompiledChannel> = {
    ...bus,
    findSource: spine.path.findSource,
    recordFirstRun: (number) => recordFirstRun(db, number),
    credentialsOf: () => {
      throw new Error("there are no connections");
    },
    pace: createSourcePace({ deliveriesPerSecondOf: () => undefined }),
    gather: spine.path.gatherFetched,
    move: spine.path.movePosition,
    setState: (channel, state) => setFoundState(db, channel, state, Date.now()),
    isPipelined: true,
    clock,
    observe: (event) => void seen.push(event),
  };

  /** Runs one poll. `changed` replaces dependencies, for example to end the worker between two writes. */
  async function poll1(changed: Partial<SourceRunsDeps<CompiledChannel>> = {}): Promise<SourceEnd> {
    const runs = createSourceRuns({ ...deps, ...changed });
    const opened = await runs.openRun(numberOf("poll"), { signal, owner: "wk_1", skipBackoff: true });
    if (opened.kind !== "open") throw new Error(opened.kind);
    const end = await source.poll(opened.open);
    await opened.open.end(end);
    return end;
  }

  return {
    app,
    appPath,
    seen,
    numberOf,
    deps,
    now: clock,
    pass: (seconds: number) => {
      offsetMs += seconds * 1000;
    },
    poll: poll1,
    /** Polls until the source has nothing more to do at once. */
    async pollAll(): Promise<SourceEnd> {
      for (let polls = 0; polls < 10; polls++) {
        const end = await poll1();
        const goesOn = end.kind === "done" && end.notBeforeMs !== undefined && end.notBeforeMs <= clock();
        if (!goesOn) return end;
      }
      throw new Error("the source does not come to an end");
    },
    send: (body: unknown, headers?: Record<string, string>) => spine.send(idOf("hook"), body, headers),
    /** Items that the provider lists from now on, in ascending order. */
    list(items: readonly ProviderItem[]) {
      server.answers = [
        (_, response) =>
          response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ items })),
      ];
    },
    events: async (type = "e") => {
      const topic = `events.${app.organizationId}.apps.app.event_received.${app.id}.hook.${type}`;
      return (await listEntries(spine.redis, topic)).map(({ fields }) => fields);
    },
    ids: async (type = "e") => {
      const topic = `events.${app.organizationId}.apps.app.event_received.${app.id}.hook.${type}`;
      return (await listEntries(spine.redis, topic)).map(({ fields }) => fields.id);
    },
    async dryRun() {
      const path = await spine.path.findSource(numberOf("poll"));
      if (path?.reconciled === undefined) throw new Error("the source reconciles no channel");
      const { channel, reconciled } = path;
      const { value, startedAtMs } = await bus.positions.read(numberOf("poll"));
      return dryRun(
        { explain: spine.path.explain, credentialsOf: deps.credentialsOf, clock },
        {
          polled: source,
          show: (text) => text,
          channel,
          reconciled,
          from: { value, startedAtMs, version: 0, updatedAtMs: undefined },
          signal,
        },
      );
    },
    source: () => spine.api.call.get(`${appPath}/channels/poll/source`),
    quarantine: () => spine.api.call.get(`${appPath}/quarantine`),
    state: () => bus.states.read(numberOf("poll")),
    cursor: async () => (await bus.positions.read(numberOf("poll"))).value,
  };
}

export const secondsAgo = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString();
