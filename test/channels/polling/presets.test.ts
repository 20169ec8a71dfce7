import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { pollingConfigSchema } from "../../../src/channels/polling/config/config.ts";
import { compilePlan } from "../../../src/channels/polling/config/plan.ts";
import { webhookConfigSchema } from "../../../src/channels/webhook/config.ts";
import { webhook } from "../../../src/channels/webhook/webhook.ts";
import { fillPaths } from "../../../src/event/definition.ts";
import type { Reconciled } from "../../../src/event/received.ts";
import type { Values } from "../../../src/event/values.ts";
import { normalize } from "../../../src/normalize/normalize.ts";
import { compileRules } from "../../../src/normalize/rule-set.ts";
import { getPresets } from "../../../src/verify/presets.ts";
import { resolveSender } from "../../../src/verify/sender.ts";
import { senderConfigSchema } from "../../../src/verify/sender-config.ts";
import { type PollingVector, readPollingVectors, type VectorExchange } from "./preset-vectors.ts";
import { type Config, PollRig } from "./support.ts";

const vectors = readPollingVectors();
const streams = [...getPresets().values()].flatMap(({ preset, streams }) =>
  streams.map((stream) => ({ preset, ...stream })),
);

/** A server that expects the exchanges of a vector, one after the other. */
async function startProvider(origin: string) {
  let waiting: VectorExchange[] = [];
  const wrong: string[] = [];
  const server = createServer((request, response) => {
    void answer(request).then(({ status = 200, headers = {}, body }) => {
      const isText = typeof body === "string";
      const type = isText ? "text/plain" : "application/json";
      const text = body === undefined ? "" : isText ? body : JSON.stringify(body);
      const own = Object.entries(headers).map(([name, value]) => [
        name,
        value.replaceAll(origin, ownOrigin()),
      ]);
      response.writeHead(status, { "content-type": type, ...Object.fromEntries(own) });
      response.end(text.replaceAll(origin, ownOrigin()));
    });
  });

  async function answer(request: IncomingMessage): Promise<VectorExchange["response"]> {
    const expected = waiting.shift();
    const sent = await toExchange(request, expected);
    if (expected === undefined) wrong.push(`unexpected request: ${sent.request}`);
    else {
      const { response: _, ...wanted } = expected;
      const shown = { ...wanted, request: sortQuery(wanted.request) };
      if (JSON.stringify(sent) !== JSON.stringify(shown))
        wrong.push(`expected ${JSON.stringify(shown)}, but got ${JSON.stringify(sent)}`);
    }
    return expected?.response ?? { status: 500 };
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const ownOrigin = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin: ownOrigin(),
    expect(exchanges: readonly VectorExchange[]) {
      waiting = [...exchanges];
    },
    /** Returns what differed from the vector. */
    differences: () => [...wrong, ...waiting.map(({ request }) => `missing request: ${request}`)],
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function toExchange(request: IncomingMessage, expected: VectorExchange | undefined) {
  const { method = "", headers = {}, url = "" } = request;
  const names = Object.keys(expected?.headers ?? {});
  const body = method === "GET" ? undefined : await json(request);
  return {
    request: sortQuery(`${method} ${url}`),
    ...(names.length > 0 && {
      headers: Object.fromEntries(names.map((name) => [name, request.headers[name] ?? headers[name]])),
    }),
    ...(body !== undefined && { body }),
  };
}

/** Decodes the query, and sorts its parameters by name. */
function sortQuery(text: string): string {
  const [method = "", target = ""] =
    text.split(" ", 2).length === 2
      ? [text.slice(0, text.indexOf(" ")), text.slice(text.indexOf(" ") + 1)]
      : [text];
  const at = target.indexOf("?");
  if (at === -1) return text;
  const query = new URLSearchParams(target.slice(at + 1));
  query.sort();
  return `${method} ${target.slice(0, at)}?${[...query].map(([name, value]) => `${name}=${value}`).join("&")}`;
}

/** Settings of the vector's channel, which calls the test's server instead of the provider. */
function settingsOf({ preset, stream, params, config }: PollingVector, origin: string, own: string): Config {
  const given = { startAt: "earliest", ...config, preset, stream, params };
  const { discriminator, request } = pollingConfigSchema.parse(given);
  const url = request.url.replace(origin, own);
  const retry = { attempts: 0 };
  const first = "first" in discriminator ? discriminator.first : undefined;
  const moved = first && { discriminator: { first: { url: first.url.replace(origin, own) } } };
  return { jitter: 0, retry, ...given, ...moved, request: { ...(config?.request as object), url } } as Config;
}

describe.each(vectors)("the stream $preset $stream", (vector) => {
  it("publishes the items of the provider's pages once each", async () => {
    await using provider = await startProvider(vector.origin);
    let nowMs = Date.parse(vector.polls[0]?.at ?? "2026-01-01T00:00:00Z");
    const definitions =
      streams.find((one) => one.preset === vector.preset && one.name === vector.stream)?.events ?? [];
    const config = settingsOf(vector, vector.origin, provider.origin);
    const rig = new PollRig({ config, definitions, clock: () => nowMs, keepsWorker: true });
    const { schedule } = pollingConfigSchema.parse(config);
    for (const { at, title, exchanges, published, end = "done", warnings = [], cursor } of vector.polls) {
      nowMs = at === undefined ? nowMs + schedule.intervalSeconds * 1000 : Date.parse(at);
      rig.log.length = 0;
      rig.warnings.length = 0;
      provider.expect(exchanges);
      const ended = await rig.pollAll();
      const kind =
        ended?.kind === "failed" || ended?.kind === "broken" ? `${ended.kind} ${ended.code}` : ended?.kind;
      const ids = rig.log.map(({ id }) => id);
      const shown = cursor === undefined ? undefined : rig.shownCursor();
      expect({
        title,
        differences: provider.differences(),
        ids,
        end: kind,
        warnings: [...rig.warnings],
        cursor: shown,
      }).toEqual({
        title,
        differences: [],
        ids: published,
        end,
        warnings,
        cursor,
      });
    }
    expect(rig.failures).toBe(0);
  });
});

/** Returns the ids of the events that a webhook channel with the preset publishes from a delivery. */
function idsInWebhook(
  preset: string,
  { headers = {}, body }: { readonly headers?: Values; readonly body: string },
  reconciled?: Reconciled,
) {
  const sender = resolveSender(senderConfigSchema.parse({ preset }), getPresets());
  if (!sender.ok) throw new Error(JSON.stringify(sender.error));
  const { paths, reading } = sender.value;
  const config = webhookConfigSchema.parse({ preset, dedupe: { onConflict: "quarantine" } });
  const channel = { number: 1, uid: "hook", kind: "webhook", appId: "app_1", organizationId: "org_1" };
  const definitions = fillPaths([{ type: "received", typePath: null }], paths);
  const rules = compileRules({ channel, profile: webhook.profile, config, definitions, reading });
  if (!rules.ok) throw new Error(JSON.stringify(rules.error));
  const type = { "content-type": "application/json" };
  const delivery = {
    method: "POST",
    headers: { ...type, ...headers },
    query: {},
    body: Buffer.from(body),
    arrivedAtMs: 0,
    reconciled,
  };
  const normalized = normalize(rules.value, delivery, {
    validatorFor: () => ({ validate: () => undefined }),
    newEventId: () => "fresh",
  });
  if (normalized instanceof Promise || normalized.kind !== "normalized") throw new Error("not normalized");
  expect(normalized.failures).toEqual([]);
  return normalized.events.map(({ id, identity, digest }) => ({ id, identity, digest }));
}

describe("the streams that find missed events", () => {
  const reconciling = streams.filter(({ reconciles }) => reconciles !== undefined);

  it("have vectors that pair an item with the webhook of the same event", () => {
    const paired = vectors.filter(({ reconciled = [] }) => reconciled.length > 0);
    const names = paired.map(({ preset, stream }) => `${preset} ${stream}`);
    expect(names.toSorted()).toEqual(reconciling.map(({ preset, name }) => `${preset} ${name}`).toSorted());
    expect(names.length).toBeGreaterThan(1);
  });

  const pairs = vectors.flatMap(({ preset, stream, params, reconciled = [] }) =>
    reconciled.map((pair) => ({ preset, stream, params, ...pair })),
  );

  it.each(pairs)("$preset: $title has the same id in both", ({ preset, stream, params, webhook, item }) => {
    const plan = compilePlan(pollingConfigSchema.parse({ preset, stream, params, reconciles: "hook" }));
    if (!plan.ok || plan.value.reconcile === undefined) throw new Error("the stream does not reconcile");
    const { build, match } = plan.value.reconcile;
    const built = build(JSON.stringify(item));
    if (!built.ok) throw new Error(built.error);
    const { headers, body } = webhook;
    const [sent] = idsInWebhook(preset, { ...(headers && { headers }), body: JSON.stringify(body) });
    const [found] = idsInWebhook(preset, built.value, { match, isPastWindow: false });
    expect(found).toMatchObject({ id: sent?.id, identity: sent?.identity });
    expect(found?.digest === sent?.digest || match === "id").toBe(true);
  });
});

describe("the streams of the presets", () => {
  it("have vectors with three pages, a later poll and a 429 each", () => {
    const lacking = streams.flatMap(({ preset, name }) => {
      const vector = vectors.find((one) => one.preset === preset && one.stream === name);
      const exchanges = vector?.polls.flatMap((poll) => poll.exchanges) ?? [];
      const isWhole = exchanges.length >= 4 && exchanges.some(({ response }) => response.status === 429);
      return isWhole && (vector?.polls.length ?? 0) >= 3 ? [] : [`${preset} ${name}`];
    });
    expect(lacking).toEqual([]);
  });

  it("have names that are unique within their preset", () => {
    const names = streams.map(({ preset, name }) => `${preset} ${name}`);
    expect(names).toEqual([...new Set(names)]);
  });

  it("leave settings of the operator alone", () => {
    const own = [
      "run",
      "startAt",
      "retention",
      "expectEverySeconds",
      "limits",
      "deliveryRecords",
      "preset",
      "stream",
      "params",
      "reconciles",
      "as",
      "match",
      "settleSeconds",
    ];
    expect(
      streams.flatMap(({ preset, name, config }) =>
        own.filter((one) => one in config).map((one) => [preset, name, one]),
      ),
    ).toEqual([]);
  });

  it("limit parameters in the scheme, host and port of their address by a whole pattern or a list", () => {
    const open = streams.flatMap(({ preset, name, config, params }) => {
      const { url = "" } = (config.request ?? {}) as { readonly url?: string };
      const origin = /^(?:\{\{[^}]*\}\}|https?:\/\/[^/?#]*)/.exec(url)?.[0] ?? "";
      const properties = (params.properties ?? {}) as Record<
        string,
        { readonly pattern?: string; readonly enum?: unknown }
      >;
      return [...origin.matchAll(/params\.(\w+)/g)]
        .filter(
          ([, param = ""]) =>
            !/^\^.*\$$/.test(properties[param]?.pattern ?? "") && properties[param]?.enum === undefined,
        )
        .map(([, param]) => `${preset} ${name} ${param}`);
    });
    expect(open).toEqual([]);
  });

  it("require a connection exactly if they say which one", () => {
    const wrong = streams.filter(
      ({ config, connection }) => (config.connection === "required") !== (connection !== null),
    );
    expect(wrong.map(({ preset, name }) => `${preset} ${name}`)).toEqual([]);
  });
});
