import type { ChannelConfig, ChannelIdentity } from "../../src/event/channel.ts";
import type { IngestResult } from "../../src/event/ingest.ts";
import type { VerifiedDelivery } from "../../src/event/received.ts";
import type { HookExchange, HookReply, ReceiveHook } from "../../src/http/hook-exchange.ts";
import { type BodyBudget, createBodyBudget } from "../../src/ingest/body/body-budget.ts";
import type { CompiledChannel } from "../../src/ingest/compile-channel.ts";
import { createConclude } from "../../src/ingest/conclude.ts";
import type { DeliveryResult } from "../../src/ingest/delivery-result.ts";
import { createHookLimits } from "../../src/ingest/hook-limits.ts";
import { createReceive, type ReceiveDeps } from "../../src/ingest/receive.ts";
import { createClientAddressOf } from "../../src/lib/addresses/client-address.ts";
import { createLog, type Log } from "../../src/log.ts";
import { createMetrics } from "../../src/metrics.ts";
import type { Normalized } from "../../src/normalize/normalize.ts";
import { rulesOf, settings } from "../normalize/support.ts";
import { senderOf } from "../verify/support.ts";

/** Creates a webhook channel without verification. It accepts any content type. */
export function pushChannel(
  limits: Partial<ChannelConfig["limits"]> = {},
  organizationId = "org_1",
): CompiledChannel {
  const config = settings();
  const identity = { number: 1, uid: "in", kind: "webhook", appId: "app_1", organizationId };
  const rules = { ...rulesOf([{ type: "e" }]), channel: identity };
  return {
    identity,
    version: 1,
    connectionId: null,
    state: "active",
    pause: undefined,
    limits: { ...config.limits, ...limits },
    kindConfig: config,
    config,
    rules,
    methods: ["POST"],
    answer: "outcome",
    acceptsContentType: () => true,
    sender: senderOf({}),
  };
}

/** Limits that no test reaches. */
export const createTestLimits = (requestsPerSecond = 100_000) =>
  createHookLimits({
    clientAddressOf: createClientAddressOf([]),
    requestsPerSecond,
    limitsOf: () => ({ hookRequestsPerSecond: undefined }),
    isOverLimit: () => false,
    nowMs: () => 0,
  });

/** Writes a delivery. Call `onItems` once the delivery is parsed. */
export type Take = (
  channel: ChannelIdentity,
  delivery: VerifiedDelivery,
  onItems: () => void,
) => IngestResult | Promise<IngestResult>;

const NORMALIZED: Normalized = { kind: "normalized", received: 1, events: [], failures: [], ignored: 0 };

/** Creates a receiver that passes each verified delivery to `take` instead of normalizing and publishing it. */
export function createTestReceive(
  take: Take,
  {
    onResult = () => {},
    log = createLog({ level: "silent" }),
    ...deps
  }: Partial<ReceiveDeps> & {
    readonly bodies?: BodyBudget;
    readonly onResult?: (result: DeliveryResult) => void;
    readonly log?: Log;
  } = {},
): ReceiveHook {
  const recorder = { settled() {}, rejected() {}, answeredHandshake() {} };
  const { conclude } = createConclude({ metrics: createMetrics(), recorder, clock: Date.now, log });
  const taken = new WeakMap<VerifiedDelivery, IngestResult | Promise<IngestResult>>();
  return createReceive({
    findChannel: () => pushChannel(),
    runtimes: new Map([["webhook", { push: {} }]]),
    route: () => Promise.reject(new Error("the channel is no intake")),
    limits: createTestLimits(),
    bodies: createBodyBudget(),
    answerHandshake: () => Promise.reject(new Error("the channel has no handshakes")),
    reactFirst: () => Promise.reject(new Error("the channel has no reactions")),
    bufferWhilePaused: () => Promise.reject(new Error("the channel is not paused")),
    quarantine: { put: () => Promise.reject(new Error("no delivery is unverified")) },
    clock: Date.now,
    ...deps,
    normalize({ channel }, delivery) {
      const { promise, resolve, reject } = Promise.withResolvers<Normalized>();
      const result = take(channel, delivery, () => resolve(NORMALIZED));
      taken.set(delivery, result);
      Promise.resolve(result).then(() => resolve(NORMALIZED), reject);
      return promise;
    },
    publishNormalized(_, delivery) {
      const result = taken.get(delivery);
      if (result === undefined) throw new Error("the delivery was not normalized");
      return result;
    },
    conclude(arrival, result) {
      onResult(result);
      conclude(arrival, result);
    },
  });
}

/** A request that needs no connection. */
export interface TestExchange extends HookExchange {
  readonly replied: Promise<HookReply>;
}

export function createTestExchange({
  method = "POST",
  target = "/hooks/x",
  headers = {},
  body = Buffer.alloc(0),
}: {
  readonly method?: string;
  readonly target?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}): TestExchange {
  const { promise, resolve } = Promise.withResolvers<HookReply>();
  let hasReplied = false;
  return {
    method,
    target,
    headers,
    peerAddress: "127.0.0.1",
    sinceMs: performance.now(),
    get hasReplied() {
      return hasReplied;
    },
    readHeaderValues: () => headers,
    takeBody: () => body,
    reply(reply) {
      hasReplied = true;
      resolve(reply);
    },
    abort() {},
    closed: async () => void (await promise),
    replied: promise,
  };
}

/** Returns the result of `ingest`, also for the delivery of an intake. Passes the error of any other result to `fail`. */
export function requireIngested(
  result: DeliveryResult,
  fail: (reason: unknown) => void,
): IngestResult | undefined {
  if (result.kind === "refused" || result.kind === "failed") {
    const { response } = result;
    fail(response instanceof Error ? (response.cause ?? response) : response);
    return undefined;
  }
  if (result.kind === "routed") return { kind: "accepted", outcome: result.outcome };
  if (result.kind !== "replied") return result as IngestResult;
  fail(new Error("the request was no delivery"));
  return undefined;
}
