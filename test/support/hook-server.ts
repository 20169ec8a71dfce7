import { startListener } from "../../src/gateway/listener.ts";
import { createHooks } from "../../src/http/hooks.ts";
import { createBodyBudget } from "../../src/ingest/body/body-budget.ts";
import { createHookLimits } from "../../src/ingest/hook-limits.ts";
import { createReceive } from "../../src/ingest/receive.ts";
import { createClientAddressOf } from "../../src/lib/addresses/client-address.ts";
import { type SpineOptions, startTestSpine, type TestSpine } from "./spine.ts";

export interface HookAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** The ingestion path behind real sockets, as senders see it. */
export interface HookServer extends AsyncDisposable {
  readonly spine: TestSpine;
  /** Adds a webhook channel to an app. Returns the channel as the API does. */
  // biome-ignore lint/suspicious/noExplicitAny: an answer of the API
  readonly open: (config: object, events?: readonly object[]) => Promise<any>;
  readonly send: (channelId: string, request?: HookRequest) => Promise<HookAnswer>;
}

export interface HookRequest {
  readonly method?: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export async function startHookServer({
  hookFastPath = true,
  ...options
}: SpineOptions & { readonly hookFastPath?: boolean } = {}): Promise<HookServer> {
  await using starting = new AsyncDisposableStack();
  const spine = starting.use(await startTestSpine(options));
  const limits = createHookLimits({
    clientAddressOf: createClientAddressOf([]),
    requestsPerSecond: 10_000,
    limitsOf: () => ({ hookRequestsPerSecond: undefined }),
    isOverLimit: () => false,
  });
  const receiveHook = createReceive({
    ...spine.path.receiving,
    findChannel: (id) => {
      // Acts as if the change feed had reported each change.
      spine.path.rules.clear();
      return spine.path.rules.find(id);
    },
    runtimes: new Map([["webhook", { push: {} }]]),
    limits,
    bodies: createBodyBudget(),
  });
  const { fetch: fetchHooks } = createHooks(receiveHook);
  const listener = starting.use(
    await startListener({ host: "127.0.0.1", port: 0, hookFastPath }, fetchHooks),
  );
  starting.use(listener.serve({ fetch: fetchHooks, receiveHook }));
  const installed = await spine.install();
  let channels = 0;
  const owned = starting.move();
  return {
    spine,
    async open(config, events = [{ type: "e" }]) {
      const channel = { uid: `c${++channels}`, kind: "webhook", config, events };
      const { status, body } = await spine.api.call("POST", `/apps/${installed.id}/channels`, channel);
      if (status !== 200) throw new Error(JSON.stringify(body));
      return body;
    },
    async send(channelId, { method = "POST", query = "", headers = {}, body } = {}) {
      const response = await fetch(`http://127.0.0.1:${listener.port}/hooks/${channelId}${query}`, {
        method,
        headers: { "content-type": "application/json", ...headers },
        ...(body === undefined ? {} : { body }),
      });
      return { status: response.status, headers: response.headers, text: await response.text() };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
