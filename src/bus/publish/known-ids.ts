import type { OutgoingEvent } from "../../event/event.ts";
import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import { slicingOf } from "./publish.ts";

/** An event's id on the bus: not there, there with the same data, or there with other data. */
export type KnownId =
  | { readonly kind: "new" }
  | { readonly kind: "duplicate" | "conflict"; readonly entryId: string };

export type FindKnownIds = ReturnType<typeof createFindKnownIds>;

const NEW: KnownId = { kind: "new" };

/**
 * Looks up ids as publishing the events would, in their order; nothing is written, and of two alike both are new. Events that are not
 * remembered are new. Throws UnavailableError.
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
    for (const [topic, asked] of Map.groupBy(places, ([, event]) => event.topic)) {
      const marks = asked.map(([, event]) => `${event.identity}${event.digest}`);
      const args = [dedupeWindowMs, slicingOf(dedupeWindowMs), ...marks];
      const answers = (await runLua([topic], args)) as string[];
      for (const [n, [place]] of asked.entries()) known[place] = read(answers[n] ?? "");
    }
    return known;
  };
}

function read(answer: string): KnownId {
  if (answer === "") return NEW;
  return { kind: answer.startsWith("=") ? "duplicate" : "conflict", entryId: answer.slice(1) };
}
