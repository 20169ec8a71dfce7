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
} from "../../data/problems/affected-objects.ts";
import type { Sighting } from "../../data/problems/problems.ts";
import type { ChannelKindName, ChannelState } from "../../event/channel.ts";
import { describeFailure } from "../../event/handler-failure.ts";
import type { ProblemKind } from "../../event/problem.ts";
import type { Clock } from "../../lib/clock.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import { inPages } from "../../lib/pages.ts";
import type { Housekeeper } from "../housekeeper.ts";
import { BOUNDS, levelOf } from "./bounds.ts";

export interface ChecksDeps {
  readonly db: Queryable;
  readonly quarantine: Pick<QuarantineStore, "usage" | "countKept">;
  readonly positions: Pick<SourcePositions, "failures">;
  readonly states: Pick<SourceStates, "read">;
  readonly silence: SilenceWatch;
  readonly topicHoldings: Housekeeper["topicHoldings"];
  readonly backlogsById: Housekeeper["backlogsById"];
  readonly pullKinds: readonly ChannelKindName[];
  readonly clock: Clock;
}

/** Detects problems of the given kinds. If `look` throws, open problems of these kinds stay open. */
export interface Check {
  readonly kinds: readonly ProblemKind[];
  /** Whether the check needs many Redis queries. Slow checks run less often. */
  readonly isSlow: boolean;
  /** Returns the problems found. Returns `undefined` if the required data is unavailable. */
  readonly look: (signal: AbortSignal) => Promise<readonly Sighting[] | undefined>;
}

const AT_ONCE = 8;
const SOURCES_AT_ONCE = 32;
const ORGANIZATIONS = 500;
/** Maximum number of failing sources whose last error is included in the problem's message. */
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

const STOPPED: {
  readonly [S in ChannelState]?: { readonly message: string; readonly suggestedAction: string };
} = {
  error: {
    message:
      "The server keeps rejecting the channel's requests, or the channel's settings do not result in a valid request",
    suggestedAction:
      "Check `lastError` of the channel's source. Fix the channel's settings, or resume the channel when the server works again.",
  },
  needsReauth: {
    message: "The server rejects the channel's credentials",
    suggestedAction:
      "Authorize the channel's connection again, or set another connection with valid credentials.",
  },
  needsSetup: {
    message: "The channel lacks a secret setting, so its deliveries get 401",
    suggestedAction: "Set the missing secret in the channel's verification settings.",
  },
  needsConnection: {
    message: "The channel has no connection, so it does not fetch events",
    suggestedAction: "Set the channel's `connectionId`, or subscribe to the channel with a `connectionId`.",
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
    const { message, suggestedAction } = STOPPED[state] ?? {
      message: `The channel is in the state ${state}`,
      suggestedAction: "Resume the channel.",
    };
    return {
      organizationId: channel.organizationId,
      subject: channel.subject,
      about: channel.about,
      kind: "channel_failing",
      level: "raised",
      severity: "error",
      figures: {},
      suggestedAction,
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
      message: `The channel's source has failed ${count} times in a row${reasons.get(number) ?? ""}.`,
      suggestedAction:
        "Check `lastError` of the channel's source. Make sure that the server works, is reachable and accepts the credentials.",
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
          message: `The channel got no event for more than ${expectEverySeconds} seconds (\`expectEverySeconds\`).`,
          suggestedAction:
            "Check that the sender still sends, and that it uses the channel's current address. Or increase `expectEverySeconds`.",
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
          message: "The connection's grant was permanently rejected, or the connection was never authorized.",
          suggestedAction: "Authorize the connection with POST /connections/{connectionId}/authorize.",
        }
      : {
          kind: "connection_failing",
          message: "The token issuer rejects the connection's settings.",
          suggestedAction:
            "Correct the connection's client id, secret or endpoints. POST /connections/{connectionId}/test shows details.",
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
    message: error ? describeFailure(error) : "The handler of the subscription is failing.",
    suggestedAction: isGone
      ? "Set the handler's new address, or resume the subscription if the handler works again."
      : "Fix the handler. Failed events are retried for 24 hours, then moved to dead letters.",
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
    message: "Retention will soon trim events that the subscription has not read.",
    suggestedAction:
      "Start the subscription's readers or add more of them. Or increase `retention` of the channels that it covers.",
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
        message: `Quarantine uses ${percent(bytes / limitBytes)} of its limit. Above the limit, deliveries with items for quarantine get 503.`,
        suggestedAction:
          "Fix the cause of the failed items. Then redrive the items in quarantine, or delete them.",
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
          message: `${items} items of the channel went to quarantine within an hour.`,
          suggestedAction:
            "Check the reasons in the channel's quarantine. Fix the channel's definitions or its sender, then redrive the items.",
        });
      }
    });
  }
  return sightings;
}

/** Returns `undefined` if storage was not measured recently. */
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
              ? "The organization's topics exceed their storage limit. New deliveries get 429 and sources wait, unless `overLimit` is `trim`."
              : waits
                ? "Redis is nearly full, and the organization is one of its largest users. New deliveries get 429 and sources wait."
                : `The organization's topics use ${percent(bytes / limit)} of their storage limit.`,
            suggestedAction:
              "Make sure that readers acknowledge events, or shorten `retention` of large topics. Or ask the operator for a higher limit or more Redis memory.",
          }
        : [];
    })
  );
}

/** Returns `undefined` if the unread events were not counted recently. */
async function lags({ db, backlogsById }: ChecksDeps): Promise<readonly Sighting[] | undefined> {
  const all = backlogsById();
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
          message: `The subscription has ${lag} unread events. The oldest has waited for ${lagSeconds} seconds.`,
          suggestedAction:
            "Start the subscription's readers or add more of them. For a handler, increase `concurrency`.",
        }
      : [];
  });
}

const percent = (part: number): string => `${Math.floor(part * 100)} %`;
