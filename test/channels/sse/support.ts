import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import type { FetchedDelivery, SourceEnd, SourceRun, StreamRun } from "../../../src/channels/source.ts";
import { sseConfigSchema } from "../../../src/channels/sse/config.ts";
import { createStreamSource } from "../../../src/channels/sse/sse.ts";
import type { IngestResult } from "../../../src/event/ingest.ts";
import { createOutbound } from "../../../src/net/create-outbound.ts";
import { listenLocally } from "../../support/local-server.ts";

export const ACCEPTED: IngestResult = {
  kind: "accepted",
  outcome: {
    received: 1,
    published: 1,
    duplicates: 0,
    ignored: 0,
    quarantined: 0,
    events: [],
    quarantine: [],
  },
};

const HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

export interface Call {
  readonly target: string;
  readonly method: string;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: string;
  readonly socket: Socket;
}

/** The response to one connection. It starts with the head of an event stream, unless `raw` is set. */
export type Script = (call: Call) => void | Promise<void>;

/** Starts a server that writes its responses directly to the socket. Each connection runs the next script; the last script is repeated. */
export async function startRawServer(...scripts: readonly Script[]) {
  const calls: Call[] = [];
  const server: Server = createServer(async (request) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const { headers, method = "", socket, url = "" } = request;
    const call = { target: url, method, headers, body, socket };
    calls.push(call);
    socket.on("error", () => {});
    await scripts[Math.min(calls.length, scripts.length) - 1]?.(call);
  });
  const local = await listenLocally(server);
  return {
    ...local,
    calls,
    url: `${local.origin}/stream`,
  };
}

/** Writes the head of an event stream. The test writes the body. */
export const writeHead = (socket: Socket): boolean => socket.write(HEAD);

/** Responds with an event stream, with each part in a separate packet, then closes the connection. */
export const streamOf =
  (...pieces: readonly (string | Uint8Array)[]): Script =>
  async ({ socket }) => {
    socket.setNoDelay(true);
    socket.write(HEAD);
    for (const piece of pieces) {
      socket.write(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
    socket.end();
  };

/** Responds with an event stream that stays open. */
export const openStreamOf =
  (...pieces: readonly string[]): Script =>
  ({ socket }) => {
    socket.write(HEAD + pieces.join(""));
  };

/** Responds with a head and no body. */
export const status =
  (line: string, ...headers: readonly string[]): Script =>
  ({ socket }) => {
    socket.end([`HTTP/1.1 ${line}`, "Connection: close", ...headers, "", ""].join("\r\n"));
  };

export interface Taken {
  readonly event: string;
  readonly data: string;
  readonly id: string | undefined;
  readonly cursor: string | undefined;
}

export interface TestRun extends Omit<StreamRun, "signal"> {
  readonly deliveries: FetchedDelivery[];
  /** The cursor of each write, in call order. */
  readonly taken: Taken[];
  readonly moves: string[];
  readonly warnings: string[];
  /** Number of events in each call of `ingestAll`. */
  readonly batchSizes: number[];
  readonly controller: AbortController;
  readonly signal: AbortSignal;
  opens: number;
  /** The stored cursor, from which the next run starts. */
  stored: string | undefined;
}

let channels = 0;

/** Creates a run that collects its deliveries and starts at `cursor`. Each run has its own channel unless `number` is set. */
export function createRun(
  config: object,
  changes: Partial<Pick<SourceRun, "credentials" | "cursor" | "ingest">> & { readonly number?: number } = {},
): TestRun {
  const { number = ++channels } = changes;
  const parsed = sseConfigSchema.parse(config);
  const controller = new AbortController();
  /** The previous writes. The cursor moves in their order. */
  let before: Promise<unknown> = Promise.resolve();
  const run: TestRun = {
    channel: {
      identity: { number, uid: "in", kind: "sse", appId: "app_1", organizationId: "org_1" },
      state: "active",
      limits: { maxBodyBytes: 1, maxDepth: 128 },
      kindConfig: parsed,
      acceptsContentType: () => true,
      methods: [],
      answer: "outcome" as const,
    },
    config: parsed,
    credentials: undefined,
    cursor: undefined,
    startedAtMs: 0,
    deliveries: [],
    taken: [],
    moves: [],
    warnings: [],
    batchSizes: [],
    controller,
    signal: controller.signal,
    opens: 0,
    stored: changes.cursor,
    async ingest(delivery, options) {
      run.deliveries.push(delivery);
      const event = String(delivery.headers.event);
      const data = delivery.body.toString();
      run.taken.push({ event, data, id: delivery.deliveryId, cursor: options.cursor });
      const result = (await changes.ingest?.(delivery, options)) ?? ACCEPTED;
      run.stored = options.cursor ?? run.stored;
      return result;
    },
    ingestAll(deliveries, { cursorAfter, signal }) {
      run.batchSizes.push(deliveries.length);
      const written = Promise.all(
        deliveries.map((delivery, n) => run.ingest(delivery, { cursor: cursorAfter(n), signal })),
      );
      before = Promise.allSettled([before, written]);
      return written;
    },
    async moveTo(cursor) {
      run.moves.push(cursor);
      await before;
      run.stored = cursor;
    },
    opened() {
      run.opens += 1;
    },
    warn(code) {
      run.warnings.push(code);
    },
    ...(changes.credentials && { credentials: changes.credentials }),
    ...(changes.cursor !== undefined && { cursor: changes.cursor }),
  };
  return run;
}

/**
 * Creates the stream source with loopback addresses allowed. `run` makes one connection. `onBytes` receives the size of each body chunk.
 */
export function createStreamClient(clock: () => number = Date.now, onBytes?: (bytes: number) => void) {
  const outbound = createOutbound({ allowNetworks: ["127.0.0.0/8"] });
  const open: typeof outbound.open = async (...call) => {
    const answer = await outbound.open(...call);
    const { body } = answer;
    const read: typeof body.read = async () => {
      const chunk = await body.read();
      onBytes?.(chunk?.length ?? 0);
      return chunk;
    };
    return { ...answer, body: { read, cancel: () => body.cancel() } };
  };
  const source = createStreamSource({ outbound: onBytes ? { ...outbound, open } : outbound, clock });
  return {
    run: (run: TestRun): Promise<SourceEnd> => source.runConnection(run),
    [Symbol.asyncDispose]: () => outbound[Symbol.asyncDispose](),
  };
}

export const idsOf = (run: TestRun): (string | undefined)[] => run.taken.map(({ id }) => id);

export const dataOf = (run: TestRun): string[] => run.taken.map(({ data }) => data);
