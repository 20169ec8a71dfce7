import type { HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import type { ChannelKindName } from "../event/channel.ts";
import type { ChannelHandle } from "../event/ingest.ts";
import { ApiError, answerError, notFound, toApiError } from "../http/problem.ts";
import type { Log } from "../log.ts";
import type { ChannelRuntime } from "./kind.ts";

export interface HooksDeps {
  /**
   * The channel behind an address, at once where it is known.
   *
   * @throws UnavailableError when that cannot be known now.
   */
  readonly findChannel: (channelId: string) => ChannelHandle | undefined | Promise<ChannelHandle | undefined>;
  readonly runtimes: ReadonlyMap<ChannelKindName, ChannelRuntime>;
  readonly log: Log;
}

/**
 * The addresses of all push channels: finds the channel, hands the request to its kind. An address is a credential: it
 * stands in no log line and in no answer.
 */
export function createHooks({ findChannel, runtimes, log }: HooksDeps): Hono<{ Bindings: HttpBindings }> {
  const hooks = new Hono<{ Bindings: HttpBindings }>();

  hooks.all("/:channelId", async (c) => {
    const found = findChannel(c.req.param("channelId"));
    const channel = found instanceof Promise ? await found : found;
    const receive = channel && runtimes.get(channel.identity.kind)?.receive;
    if (channel === undefined || receive === undefined) throw notFound("channel");
    try {
      return await receive(channel, c);
    } catch (thrown) {
      throw thrown instanceof ApiError ? thrown : new HookError(channel, thrown);
    }
  });

  hooks.onError((thrown, c) => {
    const failure = thrown instanceof HookError ? thrown.cause : thrown;
    const error = toApiError(failure);
    if (error.code === "internal" || error.code === "unavailable") {
      const channel = thrown instanceof HookError ? thrown.channel.identity : undefined;
      log[error.code === "internal" ? "error" : "warn"](
        {
          err: failure,
          channel: channel?.number,
          appId: channel?.appId,
          requestId: c.get("requestId" as never),
        },
        "delivery failed",
      );
    }
    return answerError(c, error);
  });

  return hooks;
}

/** A failure with the channel that it happened to. */
class HookError extends Error {
  readonly channel: ChannelHandle;

  constructor(channel: ChannelHandle, cause: unknown) {
    super("delivery failed", { cause });
    this.channel = channel;
  }
}
