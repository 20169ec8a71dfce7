import { luaScript } from "../../lib/lua.ts";
import { createConfirmDurability } from "../connection/confirm-durability.ts";
import type { RedisBus } from "../connection/redis.ts";
import type { JobQueue } from "../jobs/job-queue.ts";
import { wakesKey } from "../keys.ts";
import { parseOptionalNumber } from "./source-states.ts";

/** A channel that a wake names. The uid is used instead of the internal id, so that a wake also finds a channel that was created again. */
export interface WokenChannel {
  readonly appId: string;
  readonly uid: string;
}

/** Data of a job that polls a channel because a webhook has announced new items. */
export interface WakeJob {
  /** Result of `formatWakeName`. */
  readonly wake: string;
}

/** Number of wakes of a channel, and the time of the last one. */
export interface WakeCount {
  readonly count: number;
  readonly lastAtMs: number;
}

/** Returns the name under which the wake of a channel waits in the job queue. A channel has at most one waiting wake. */
export const formatWakeName = ({ appId, uid }: WokenChannel): string => `wake.${appId}.${uid}`;

export const isWakeName = (name: string): boolean => name.startsWith("wake.");

export type Wakes = ReturnType<typeof createWakes>;

/** How long the count of a channel's wakes is stored after the last wake, in seconds. */
const COUNT_TTL_SECONDS = 30 * 86_400;

/**
 * Stores wakes. A wake makes the workers poll a channel, even if its next poll is not due.
 *
 * All methods throw UnavailableError if Redis is unavailable.
 */
export function createWakes<D extends object>({
  redis,
  queue,
}: {
  readonly redis: RedisBus;
  readonly queue: Pick<JobQueue<D | WakeJob>, "addWaiting" | "markKey">;
}) {
  const confirmDurability = createConfirmDurability(redis, queue.markKey);
  const runCount = luaScript(redis, new URL("./wake-count.lua", import.meta.url));
  return {
    /**
     * Stores a wake, as durable as configured. A poll that starts after this call will follow. Returns false if a wake of this channel is
     * already waiting, whose poll also covers this wake.
     */
    async store(channel: WokenChannel, nowMs: number): Promise<boolean> {
      const isNew = await queue.addWaiting(formatWakeName(channel), { wake: formatWakeName(channel) });
      await Promise.all([
        // A waiting wake may not be durable yet either.
        confirmDurability(),
        runCount([wakesKey(channel)], [nowMs, COUNT_TTL_SECONDS]),
      ]);
      return isNew;
    },
    /** Returns `undefined` if the channel was not woken for 30 days. */
    async readCount(channel: WokenChannel): Promise<WakeCount | undefined> {
      const [count, lastAt] = (await redis.call("hmget", [wakesKey(channel), "n", "at"])) as (
        | string
        | null
      )[];
      const lastAtMs = parseOptionalNumber(lastAt);
      return lastAtMs === undefined ? undefined : { count: Number(count), lastAtMs };
    },
  };
}
