import { setTimeout as delay } from "node:timers/promises";
import { createAcknowledger } from "./acknowledge.ts";
import { createCommands } from "./commands.ts";
import type { Connection } from "./connection.ts";
import { type EntryHandler, Hand } from "./in-flight-window.ts";
import type { ConsumerSettings } from "./options.ts";
import { startOrderedTopics } from "./ordered-topics.ts";
import { runReader } from "./reader.ts";
import { runKeeper, runRecovery } from "./recovery.ts";
import { createTopicList } from "./topic-list.ts";

export interface EngineDeps {
  readonly settings: ConsumerSettings;
  readonly connection: Pick<Connection, "isCluster" | "call">;
  /** To wait on for new entries; without it they are looked for again and again. */
  readonly blocked?: Pick<Connection, "call">;
  /** The wait between two looks that found nothing; default so many ms. */
  readonly idle?: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly handler: EntryHandler;
  readonly signal: AbortSignal;
}

/** Reads a subscription until its signal aborts and all that was under way has ended. */
export async function runEngine(deps: EngineDeps): Promise<void> {
  const { settings, connection, blocked, handler, signal } = deps;
  const onError = (error: unknown): void => settings.onProblem({ kind: "redis", error });
  const { subscription: group, name: reader, maxDeadLetters } = settings;
  const names = { group, reader, maxDeadLetters };
  const commands = createCommands(connection, names);
  const topics = createTopicList(commands, settings.only);
  const { acknowledge, close } = createAcknowledger(commands, onError);
  const hand = new Hand({ commands, settings, handler, acknowledge });
  signal.addEventListener("abort", () => hand.stop(), { once: true });
  // What is in the hand is kept until the last handler has ended.
  const over = new AbortController();
  const shared = { settings, topics, commands, hand, signal };
  const kept = { ...shared, over: over.signal };
  const ordered = settings.ordered ? startOrderedTopics(kept) : undefined;
  const keeping = ordered?.running ?? runKeeper(kept);
  await Promise.all([
    runReader({
      ...shared,
      isCluster: connection.isCluster,
      reading: blocked === undefined ? commands : createCommands(blocked, names),
      isBlocking: blocked !== undefined,
      idle: deps.idle ?? wait,
      mine: ordered?.mine,
    }),
    ...(ordered === undefined ? [runRecovery(shared)] : []),
  ]);
  await hand.close(settings.stopTimeoutMs);
  over.abort();
  await keeping;
  close();
  await ordered?.leave().catch(onError);
  for (const topic of await topics.current().catch(() => [])) await commands.leave(topic).catch(() => {});
}

const wait = (ms: number, signal: AbortSignal): Promise<void> =>
  delay(ms, undefined, { signal }).catch(() => {});
