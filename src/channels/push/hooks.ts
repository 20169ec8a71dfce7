import type { HttpBindings } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { type ChannelKindName, channelFacts } from "../../event/channel.ts";
import type { ChannelHandle } from "../../event/ingest.ts";
import { answerError, notFound, toApiError } from "../../http/problem.ts";
import { requestIdOf, requireOneHost } from "../../http/request.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../log.ts";
import type { Metrics } from "../../metrics.ts";
import type { ChannelRuntime } from "../kind.ts";
import type { HookLimits } from "./rate-limit.ts";
import { DeliveryRefusedError } from "./receive-delivery.ts";

/** The path before the channel's id. */
export const HOOKS_PATH = "/hooks/";

export interface HooksDeps<C extends ChannelHandle = ChannelHandle> {
  /**
   * The channel behind an address, at once where it is known.
   *
   * @throws UnavailableError when that cannot be known now.
   */
  readonly findChannel: (channelId: string) => C | undefined | Promise<C | undefined>;
  readonly runtimes: ReadonlyMap<ChannelKindName, ChannelRuntime<C>>;
  readonly limits: Pick<HookLimits, "arrived" | "addressOf">;
  readonly metrics: Pick<Metrics, "deliveries" | "countsOf" | "hookSeconds">;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The addresses of all push channels: finds the channel, hands the request to its kind. An address is a credential: it
 * stands in no log line and in no answer.
 */
export function createHooks<C extends ChannelHandle>(deps: HooksDeps<C>): Hono<{ Bindings: HttpBindings }> {
  const { findChannel, runtimes, limits, metrics } = deps;
  const hooks = new Hono<{ Bindings: HttpBindings }>();

  /** On Node's own response: every answer carries it, also one that a kind has made itself. */
  function nameRequest({ req, env: { outgoing } }: Context<{ Bindings: HttpBindings }>): string {
    const given = outgoing.getHeader("X-Request-Id");
    if (typeof given === "string") return given;
    const id = requestIdOf(req.header("x-request-id"), deps.clock());
    outgoing.setHeader("X-Request-Id", id);
    // No cache keeps it, and no browser renders it: it may repeat what was sent.
    outgoing.setHeader("Cache-Control", "no-store");
    outgoing.setHeader("X-Content-Type-Options", "nosniff");
    return id;
  }

  hooks.all(`${HOOKS_PATH}:channelId`, async (c) => {
    const sinceMs = performance.now();
    nameRequest(c);
    requireOneHost(c.env.incoming);
    const found = findChannel(c.req.param("channelId"));
    const channel = found instanceof Promise ? await found : found;
    const receive = channel && runtimes.get(channel.identity.kind)?.receive;
    if (channel === undefined || receive === undefined) throw notFound("channel");
    try {
      limits.arrived(channel, c.env.incoming);
      const answer = await receive(channel, c, limits.addressOf(c.env.incoming));
      metrics.hookSeconds.observe("ok", (performance.now() - sinceMs) / 1000);
      return answer;
    } catch (thrown) {
      throw new HookError(channel, sinceMs, thrown);
    }
  });

  hooks.notFound(() => {
    throw notFound("channel");
  });

  hooks.onError((thrown, c) => {
    const requestId = nameRequest(c);
    const channel = thrown instanceof HookError ? thrown.channel.identity : undefined;
    const failure = thrown instanceof HookError ? thrown.cause : thrown;
    const error = toApiError(failure);
    const result = error.code === "internal" || error.code === "unavailable" ? error.code : "refused";
    const refusal = failure instanceof DeliveryRefusedError ? failure : undefined;
    if (channel && !refusal) {
      metrics.deliveries.add(channel.kind, result);
      metrics.countsOf(channel)[result === "refused" ? "refused" : "failed"]++;
    }
    if (thrown instanceof HookError) {
      const outcome = error.code === "unauthenticated" ? "unverified" : result;
      metrics.hookSeconds.observe(outcome, (performance.now() - thrown.sinceMs) / 1000);
    }
    const line = {
      requestId,
      code: error.code,
      method: c.req.method,
      ...(channel && channelFacts(channel)),
      clientAddress: limits.addressOf(c.env.incoming),
    };
    // Guessed addresses and floods must not fill the log.
    if (channel === undefined && result === "refused")
      deps.log.debug({ event: "hook.no_channel", ...line }, "no such channel");
    else if (error.code === "rate_limited")
      deps.log.debug({ event: "hook.rate_limited", ...line }, "delivery refused");
    else if (result === "refused") {
      const facts = { event: "hook.refused", ...line, details: error.details, reason: refusal?.reason };
      deps.log.info(facts, "delivery refused");
    } else {
      const level = result === "internal" ? "error" : "warn";
      deps.log[level]({ event: "hook.failed", ...line, err: failure }, "delivery failed");
    }
    return answerError(c, error);
  });

  return hooks;
}

/** A failure with the channel that it happened to, and when its request came. */
class HookError extends Error {
  readonly channel: ChannelHandle;
  readonly sinceMs: number;

  constructor(channel: ChannelHandle, sinceMs: number, cause: unknown) {
    super("delivery failed", { cause });
    this.channel = channel;
    this.sinceMs = sinceMs;
  }
}
