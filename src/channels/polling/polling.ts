import { setTimeout as delay } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import { getStoredConfig } from "../../lib/stored-config.ts";
import { upToEntries } from "../../lib/up-to-entries.ts";
import type { Tracing } from "../../tracing/tracing.ts";
import type { ChannelKind } from "../kind.ts";
import type { PolledSource, PollFacts, SourceEnd, SourceRun } from "../source.ts";
import { pollingConfigSchema } from "./config/config.ts";
import { compilePlan, type Plan } from "./config/plan.ts";
import { findStream } from "./config/preset-stream.ts";
import { toPollSchedule } from "./config/schedule.ts";
import { pollCursorFormat } from "./cursor/cursor.ts";
import { dryRunPoll } from "./dry-run.ts";
import { type LargeRequest, readLargePage } from "./fetch/large-page.ts";
import { type PollDeps, pollSource } from "./poll-source.ts";
import { startPollTrace } from "./poll-trace.ts";
import { pollingProfile } from "./profile.ts";
import { parseOrigin } from "./request/request-template.ts";

export const polling: ChannelKind = {
  kind: "polling",
  configSchema: pollingConfigSchema,
  fromStream(given, { connection }) {
    const stream = findStream(given);
    // `connection` is stored with its default, because queries select the channels that require one.
    // A channel that reconciles another one uses the definitions of that channel.
    const definitions = given.reconciles === undefined ? stream?.events : [];
    return stream && { config: { ...given, connection }, definitions: definitions ?? [] };
  },
  reconcileOf(config) {
    if (config.reconciles === undefined) return undefined;
    const plan = compilePlan(getStoredConfig(pollingConfigSchema, config));
    if (!plan.ok || plan.value.reconcile === undefined) return undefined;
    const { channelUid, settleMs, supplies } = plan.value.reconcile;
    const { discriminator } = plan.value.config;
    const lookBackSeconds = discriminator.by === "timestamp" ? discriminator.lookBackSeconds : 0;
    return { channelUid, lookBackSeconds, settleSeconds: settleMs / 1000, supplies };
  },
  secretFields: [],
  addressed: false,
  isPolled: true,
  profile: pollingProfile,
  cursor: pollCursorFormat,
  originOf: (config) => parseOrigin(getStoredConfig(pollingConfigSchema, config).request),
  needsSetup: () => false,
  readLarge: (request) => readLargePage(request as LargeRequest),
  async start({ outbound, clock, readInWorker, tracing }) {
    const wait: PollDeps["wait"] = (ms, { signal }) => delay(ms, undefined, { signal });
    return {
      polled: createPolledSource({ outbound, clock, wait, readInWorker, random: Math.random }, tracing),
      async [Symbol.asyncDispose]() {},
    };
  },
};

/**
 * Number of consecutive polls with only old items after which a warning is reported. One such poll may only mean that an item was deleted.
 */
const BEHIND_TIMES = 3;
const MAX_BEHIND = 10_000;
const BEHIND =
  "Several polls in a row returned only items below the cursor. If the server has restarted its numbering or was restored from a backup, set or reset the cursor";

/** @param tracing `undefined` if the gateway exports no traces */
export function createPolledSource(deps: PollDeps, tracing?: Tracing): PolledSource {
  /** Compiled settings, cached per settings object. All polls of an active channel share one settings object. */
  const plans = new WeakMap<object, Plan>();

  function planOf(config: unknown): Plan {
    const settings = Object(config);
    const known = plans.get(settings);
    if (known !== undefined) return known;
    const plan = compilePlan(getStoredConfig(pollingConfigSchema, config));
    if (!plan.ok) throw new Error(plan.error.map(({ path, message }) => `${path} ${message}`).join("; "));
    plans.set(settings, plan.value);
    return plan.value;
  }

  /** Number of consecutive polls with only old items, by internal channel id. Each process counts separately. */
  const behind = new LRUCache<number, number>(upToEntries(MAX_BEHIND));

  function countBehind(run: SourceRun, isBehind: boolean): void {
    const { number } = run.channel.identity;
    const times = (behind.get(number) ?? 0) + 1;
    if (!isBehind) behind.delete(number);
    else behind.set(number, times);
    if (isBehind && times >= BEHIND_TIMES) run.warn("behind_cursor", BEHIND);
  }

  return {
    schedule: (config) => toPollSchedule(planOf(config).config),
    origin: (config) => parseOrigin(planOf(config).config.request),
    async poll(run) {
      const trace = tracing && startPollTrace(tracing, run, deps.outbound);
      const pollDeps = trace === undefined ? deps : { ...deps, outbound: trace.outbound };
      const onPollEnd = (isBehind: boolean): void => countBehind(run, isBehind);
      let facts: PollFacts = { requests: 0, method: undefined, status: undefined, items: 0 };
      let end: SourceEnd | undefined;
      try {
        end = await pollSource(pollDeps, planOf(run.config), trace?.run ?? run, {
          onPollEnd,
          observe({ sent, response }) {
            const { method } = sent.request;
            facts = { ...facts, requests: facts.requests + 1, method, status: response?.status };
          },
          onPage(items) {
            facts = { ...facts, items: facts.items + items };
          },
        });
        return end;
      } finally {
        run.notePoll?.(facts);
        trace?.end(end);
      }
    },
    dryRun: (run) => dryRunPoll(deps, planOf(run.config), run),
  };
}
