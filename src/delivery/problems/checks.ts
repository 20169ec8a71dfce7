import type { QuarantineStore } from "../../bus/quarantine/quarantine.ts";
import { QUARANTINE_LIMITS } from "../../bus/quarantine/quarantine-record.ts";
import type { SourcePositions } from "../../bus/sources/source-positions.ts";
import type { SourceStates } from "../../bus/sources/source-states.ts";
import type { SilenceWatch } from "../../channels/pull/silence.ts";
import { listSources } from "../../data/channels/sources.ts";
import type { Queryable } from "../../data/database.ts";
import {
  listAtRisk,
  listFailingHandlers,
  listStoppedChannels,
  listTroubledConnections,
  nameActive,
  nameChannels,
  pageOrganizations,
} from "../../data/problems/in-trouble.ts";
import type { Sighting } from "../../data/problems/problems.ts";
import type { ChannelKindName, ChannelState } from "../../event/channel.ts";
import type { ProblemKind } from "../../event/problem.ts";
import type { Clock } from "../../lib/clock.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import { inPages } from "../../lib/pages.ts";
import { describeFailure } from "../handler-failure.ts";
import type { Housekeeper } from "../housekeeper.ts";
import { BOUNDS, levelOf } from "./bounds.ts";

export interface ChecksDeps {
  readonly db: Queryable;
  readonly quarantine: Pick<QuarantineStore, "usage" | "countKept">;
  readonly positions: Pick<SourcePositions, "failures">;
  readonly states: Pick<SourceStates, "read">;
  readonly silence: SilenceWatch;
  readonly topicHoldings: Housekeeper["topicHoldings"];
  readonly standings: Housekeeper["standings"];
  /** The kinds that fetch. */
  readonly pullKinds: readonly ChannelKindName[];
  readonly clock: Clock;
}

/** Looks for problems of some kinds. What it throws says that nobody knows of these; undefined: not yet, or no longer. */
export interface Check {
  readonly kinds: readonly ProblemKind[];
  /** It asks the bus about every source, subscription or organization: it comes less often. */
  readonly isSlow: boolean;
  readonly look: (signal: AbortSignal) => Promise<readonly Sighting[] | undefined>;
}

const AT_ONCE = 8;
const SOURCES_AT_ONCE = 32;
const ORGANIZATIONS = 500;
/** Sources whose errors are looked up for the message. */
const MOST_REASONS = 200;
const HOUR_MS = 3_600_000;

export const createChecks = (deps: ChecksDeps): readonly Check[] => [
  { kinds: ["channel_failing"], isSlow: true, look: () => failingChannels(deps) },
  { kinds: ["channel_silent"], isSlow: true, look: (signal) => silentChannels(deps, signal) },
  { kinds: ["connection_failing", "connection_needs_reauth"], isSlow: false, look: () => connections(deps) },
  { kinds: ["handler_failing"], isSlow: false, look: () => failingHandlers(deps) },
  {
    kinds: ["quarantine_growing", "quarantine_near_limit"],
    isSlow: true,
    look: (signal) => quarantine(deps, signal),
  },
  { kinds: ["retention_at_risk"], isSlow: false, look: () => retentionAtRisk(deps) },
  { kinds: ["storage_near_limit"], isSlow: false, look: () => storage(deps) },
  { kinds: ["subscription_lagging"], isSlow: false, look: () => lags(deps) },
];

const STOPPED: { readonly [S in ChannelState]?: { readonly message: string; readonly cure: string } } = {
  error: {
    message: "Its requests are refused again and again, or its settings make none",
    cure: "See `lastError` of its source; mend its settings, or resume it once the other side is well.",
  },
  needsReauth: {
    message: "Its credentials are refused",
    cure: "Authorize its connection anew, or give it one whose credentials are accepted.",
  },
  needsSetup: {
    message: "A secret setting is missing: its deliveries are answered 401",
    cure: "Set the missing secret of its verification.",
  },
  needsConnection: {
    message: "It has no connection and fetches nothing",
    cure: "Set its `connectionId`, or subscribe to it with one.",
  },
};

async function failingChannels(deps: ChecksDeps): Promise<readonly Sighting[]> {
  const { db, positions, states } = deps;
  const stopped = await listStoppedChannels(db);
  const wanted = (await listSources(db, deps.pullKinds)).filter(
    ({ isWanted, state }) => isWanted && state === "active",
  );
  const failures = new Map<number, number>();
  await mapBounded(wanted, SOURCES_AT_ONCE, async ({ number }) => {
    const count = await positions.failures(number);
    if (levelOf(count, BOUNDS.failures)) failures.set(number, count);
  });
  const named = await nameChannels(db, [...failures.keys()]);
  const fetching = new Set([...failures.keys(), ...stopped.filter(isTried).map(({ number }) => number)]);
  const reasons = new Map<number, string>();
  await mapBounded([...fetching].slice(0, MOST_REASONS), AT_ONCE, async (number) => {
    const { lastError } = await states.read(number);
    if (lastError) reasons.set(number, `: ${lastError.message}`);
  });
  const sightings: Sighting[] = stopped.map(({ state, number, ...channel }) => {
    const { message, cure } = STOPPED[state] ?? { message: `It is ${state}`, cure: "Resume it." };
    return {
      organizationId: channel.organizationId,
      subject: channel.subject,
      about: channel.about,
      kind: "channel_failing",
      level: "raised",
      severity: "error",
      figures: {},
      cure,
      message: `${message}${reasons.get(number) ?? ""}.`,
    };
  });
  for (const [number, count] of failures) {
    const channel = named.get(number);
    const level = levelOf(count, BOUNDS.failures);
    if (!channel || !level) continue;
    sightings.push({
      ...channel,
      kind: "channel_failing",
      level,
      severity: "error",
      figures: { failuresInARow: count },
      message: `Its source has failed ${count} times in a row${reasons.get(number) ?? ""}.`,
      cure: "See `lastError` of its source: whether the other side is well, can be reached, and takes the credentials.",
    });
  }
  return sightings;
}

const isTried = ({ state }: { readonly state: ChannelState }): boolean =>
  state === "error" || state === "needsReauth";

async function silentChannels(
  { db, silence }: ChecksDeps,
  signal: AbortSignal,
): Promise<readonly Sighting[]> {
  const silent = await silence.check(signal);
  const named = await nameChannels(
    db,
    silent.map(({ number }) => number),
  );
  return silent.flatMap(({ number, expectEverySeconds }) => {
    const channel = named.get(number);
    return channel
      ? {
          ...channel,
          kind: "channel_silent",
          level: "raised",
          severity: "warning",
          figures: { expectEverySeconds },
          message: `No event came for more than ${expectEverySeconds} seconds, its \`expectEverySeconds\`.`,
          cure: "Look whether its sender still sends, and to the present address; or expect events less often.",
        }
      : [];
  });
}

async function connections({ db }: ChecksDeps): Promise<readonly Sighting[]> {
  const found = await listTroubledConnections(db);
  return found.map(({ state, ...connection }) => ({
    ...connection,
    level: "raised",
    severity: "error",
    figures: {},
    ...(state === "needsReauth"
      ? {
          kind: "connection_needs_reauth",
          message: "Its grant is refused for good, or none was given yet.",
          cure: "Let a person authorize it: POST /connections/{connectionId}/authorize.",
        }
      : {
          kind: "connection_failing",
          message: "Its issuer refuses its settings.",
          cure: "Correct its client id, secret or endpoints; POST /connections/{connectionId}/test says more.",
        }),
  }));
}

async function failingHandlers({ db }: ChecksDeps): Promise<readonly Sighting[]> {
  const found = await listFailingHandlers(db);
  return found.map(({ isGone, error, ...subscription }) => ({
    ...subscription,
    kind: "handler_failing",
    level: "raised",
    severity: "error",
    figures: {},
    message: error ? describeFailure(error) : "The handler takes nothing.",
    cure: isGone
      ? "Subscribe with the handler's new address, or resume the subscription if it is back."
      : "Mend the handler; what it did not take is tried again for a day, then kept as dead letters.",
  }));
}

async function retentionAtRisk({ db }: ChecksDeps): Promise<readonly Sighting[]> {
  const found = await listAtRisk(db);
  return found.map((subscription) => ({
    ...subscription,
    kind: "retention_at_risk",
    level: "raised",
    severity: "error",
    figures: {},
    message: "Retention is about to take events that it has not read.",
    cure: "Let its readers go on, or add some; or widen `retention` of the channels that it covers.",
  }));
}

async function quarantine(deps: ChecksDeps, signal: AbortSignal): Promise<readonly Sighting[]> {
  const { db, quarantine, clock } = deps;
  const { channelBytes } = QUARANTINE_LIMITS;
  const sightings: Sighting[] = [];
  const pages = inPages("id", "", ORGANIZATIONS, (after, limit) => pageOrganizations(db, after, limit));
  for await (const page of pages) {
    await mapBounded(page, AT_ONCE, async ({ id: organizationId }) => {
      signal.throwIfAborted();
      const { totalBytes, limitBytes, keptBytes } = await quarantine.usage(organizationId);
      const nearLimit = (bytes: number, limitBytes: number) => ({
        kind: "quarantine_near_limit" as const,
        severity: "error" as const,
        figures: { bytes, limitBytes },
        message: `Quarantine holds ${percent(bytes / limitBytes)} of what it may; beyond that, deliveries that would be quarantined are answered 503.`,
        cure: "Mend what makes deliveries fail, then redrive what is in quarantine, or delete it.",
      });
      const level = levelOf(totalBytes / limitBytes, BOUNDS.part);
      if (level)
        sightings.push({
          organizationId,
          subject: organizationId,
          about: {},
          level,
          ...nearLimit(totalBytes, limitBytes),
        });
      const named = await nameChannels(db, [...keptBytes.keys()]);
      for (const [number, channel] of named) {
        const bytes = keptBytes.get(number) ?? 0;
        const near = levelOf(bytes / channelBytes, BOUNDS.part);
        if (near) sightings.push({ ...channel, level: near, ...nearLimit(bytes, channelBytes) });
        const items = await quarantine.countKept(organizationId, number, clock() - HOUR_MS);
        const grows = levelOf(items, BOUNDS.quarantinedAnHour);
        if (!grows) continue;
        sightings.push({
          ...channel,
          kind: "quarantine_growing",
          level: grows,
          severity: "warning",
          figures: { itemsInAnHour: items },
          message: `${items} items went to quarantine within an hour.`,
          cure: "See their reasons in its quarantine; mend its definitions or its sender, then redrive them.",
        });
      }
    });
  }
  return sightings;
}

/** Undefined where the housekeeper has not come through all topics of late. */
async function storage({ topicHoldings }: ChecksDeps): Promise<readonly Sighting[] | undefined> {
  const holdings = topicHoldings();
  return (
    holdings &&
    [...holdings].flatMap(([organizationId, { bytes, limit, waits }]) => {
      const isOver = bytes > limit;
      const level = waits ? "raised" : levelOf(bytes / limit, BOUNDS.part);
      return level
        ? {
            organizationId,
            subject: organizationId,
            about: {},
            level,
            kind: "storage_near_limit" as const,
            severity: isOver || waits ? "error" : "warning",
            figures: { bytes, limitBytes: limit },
            message: isOver
              ? "The topics of the organization hold more than they may: new deliveries are answered 429 and its sources wait, unless it has asked that the oldest be trimmed (`overLimit`)."
              : waits
                ? "Redis is nearly full, and the organization is among those that hold most of it: new deliveries are answered 429 and its sources wait."
                : `The topics of the organization hold ${percent(bytes / limit)} of what they may.`,
            cure: "Let readers acknowledge what they have read, shorten `retention` of large topics, or ask the operator for a higher limit, or more memory where Redis is nearly full.",
          }
        : [];
    })
  );
}

/** By what the watch over retention has seen of all groups; undefined where it has not come through all topics of late. */
async function lags({ db, standings }: ChecksDeps): Promise<readonly Sighting[] | undefined> {
  const all = standings();
  if (!all) return undefined;
  const behind = [...all.values()].flatMap(({ subscription, lag, lagSeconds }) => {
    const levels = [levelOf(lag, BOUNDS.lag), levelOf(lagSeconds, BOUNDS.lagSeconds)];
    const level = levels.includes("raised") ? "raised" : levels.find((one) => one !== undefined);
    return level ? [{ id: subscription, level, lag, lagSeconds: Math.floor(lagSeconds) } as const] : [];
  });
  const named = await nameActive(
    db,
    behind.map(({ id }) => id),
  );
  return behind.flatMap(({ id, level, lag, lagSeconds }) => {
    const subscription = named.get(id);
    return subscription
      ? {
          ...subscription,
          kind: "subscription_lagging",
          level,
          severity: "warning",
          figures: { lag, lagSeconds },
          message: `${lag} events wait for it, the oldest for ${lagSeconds} seconds.`,
          cure: "Let its readers go on, or add some; a handler takes more at once with a higher `concurrency`.",
        }
      : [];
  });
}

const percent = (part: number): string => `${Math.floor(part * 100)} %`;
