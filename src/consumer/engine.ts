import { sleep } from "../lib/sleep.ts";
import { Acknowledger } from "./acknowledge.ts";
import type { Batching } from "./batch-collector.ts";
import { extendClaims, recoverEntries, startOwnedTopics, TopicOwnership } from "./claims.ts";
import { createCommands } from "./commands.ts";
import type { Connection } from "./connection.ts";
import type { EntryHandler } from "./in-flight.ts";
import { InFlightWindow } from "./in-flight-window.ts";
import type { ConsumerSettings } from "./options.ts";
import { readNewEntries } from "./reader.ts";
import { createTopicList } from "./topic-list.ts";

export interface EngineDeps {
  readonly settings: ConsumerSettings;
  readonly connection: Pick<Connection, "isCluster" | "call">;
  /** Connection for reads that wait for new entries. Without it, the engine polls. */
  readonly blocking?: Pick<Connection, "call">;
  /** Waits after a poll without entries. Defaults to `sleep`. */
  readonly idle?: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly handler: EntryHandler;
  /** Hands several entries at once to another handler than `handler`. */
  readonly batching?: Batching | undefined;
  readonly signal: AbortSignal;
}

/** Reads and handles the events of a subscription. Resolves after `signal` has aborted and all running handlers have finished. */
export async function runEngine(deps: EngineDeps): Promise<void> {
  const { settings, connection, blocking, handler, signal } = deps;
  const onError = (error: unknown): void => settings.onProblem({ kind: "redis", error });
  const commands = createCommands(connection, settings);
  const topics = createTopicList(commands, settings.only);
  const acknowledger = new Acknowledger(commands, onError);
  const ownership = settings.ordered !== false ? new TopicOwnership() : undefined;
  const owns = ownership && ((topic: string) => ownership.owns(topic));
  const window = new InFlightWindow({
    ...{ commands, settings, handler, acknowledger, onError, owns },
    batching: deps.batching,
  });
  signal.addEventListener("abort", () => window.stop(), { once: true });
  const idle = new AbortController();
  const shared = { settings, topics, commands, window, onError, signal, idle: idle.signal };
  const owned = ownership && startOwnedTopics({ ...shared, ownership });
  const claiming = owned?.running ?? extendClaims(shared);
  await Promise.all([
    readNewEntries({
      ...shared,
      isCluster: connection.isCluster,
      commands: blocking === undefined ? commands : createCommands(blocking, settings),
      isBlocking: blocking !== undefined,
      rest: deps.idle ?? sleep,
      ownership,
    }),
    ...(owned === undefined ? [recoverEntries(shared)] : []),
  ]);
  await window.close(settings.stopTimeoutMs);
  idle.abort();
  await claiming;
  acknowledger.close();
  await owned?.release().catch(onError);
  for (const topic of await topics.current().catch(() => [])) {
    await commands.leaveGroup(topic).catch(() => {});
  }
}
