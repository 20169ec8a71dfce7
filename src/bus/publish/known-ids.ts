import type { OutgoingEvent } from "../../event/event.ts";
import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import { computeSlicing } from "./publish-call.ts";

/** Whether an event id was published before: `new`, known with the same data (`duplicate`), or known with other data (`conflict`). */
export type KnownId =
  | { readonly kind: "new" }
  | { readonly kind: "duplicate" | "conflict"; readonly entryId: string };

export type FindKnownIds = ReturnType<typeof createFindKnownIds>;

const NEW: KnownId = { kind: "new" };

/**
 * Looks up which event ids are known, without publishing anything. Results have the order of the events.
 *
 * Two equal unknown events are both `new`. Events without deduplication are `new` too.
 *
 * @throws UnavailableError
 */
export function createFindKnownIds({ redis }: { readonly redis: RedisBus }) {
  const runLua = luaScript(redis, new URL("./dedupe-find.lua", import.meta.url));
  return async (
    events: readonly Pick<OutgoingEvent, "topic" | "identity" | "digest">[],
    { dedupeWindowMs }: { readonly dedupeWindowMs: number },
  ): Promise<readonly KnownId[]> => {
    const known: KnownId[] = events.map(() => NEW);
    if (dedupeWindowMs === 0) return known;
    const places = [...events.entries()].filter(([, { identity }]) => identity !== "");
    for (const [topic, lookups] of Map.groupBy(places, ([, event]) => event.topic)) {
      const marks = lookups.map(([, event]) => `${event.identity}${event.digest}`);
      const args = [dedupeWindowMs, computeSlicing(dedupeWindowMs), ...marks];
      const replies = (await runLua([topic], args)) as string[];
      for (const [n, [place]] of lookups.entries()) known[place] = parseKnownId(replies[n] ?? "");
    }
    return known;
  };
}

function parseKnownId(reply: string): KnownId {
  if (reply === "") return NEW;
  return { kind: reply.startsWith("=") ? "duplicate" : "conflict", entryId: reply.slice(1) };
}
