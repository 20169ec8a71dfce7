import type { QuarantineStore } from "../../bus/quarantine/quarantine.ts";
import { QUARANTINE_LIMITS } from "../../bus/quarantine/quarantine-record.ts";
import type { SourcePositions } from "../../bus/sources/source-positions.ts";
import type { SourceStates } from "../../bus/sources/source-states.ts";
import type { SilenceWatch } from "../../channels/pull/silence.ts";
import { pageOrganizations } from "../../data/accounts/organizations.ts";
import { listSources } from "../../data/channels/sources.ts";
import type { Queryable } from "../../data/database.ts";
import {
  listStoppedChannels,
  type Named,
  nameChannels,
  ofOrganization,
} from "../../data/problems/affected-objects.ts";
import type { Sighting } from "../../data/problems/problems.ts";
import type { ChannelKindName, ChannelState } from "../../event/channel.ts";
import type { Clock } from "../../lib/clock.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import { formatCount, formatDuration } from "../../lib/quantities.ts";
import { BOUNDS, formatPercent, levelOf } from "./bounds.ts";

export interface ChannelChecksDeps {
  readonly db: Queryable;
  readonly quarantine: Pick<QuarantineStore, "usage" | "countKept">;
  readonly positions: Pick<SourcePositions, "failures">;
  readonly states: Pick<SourceStates, "read">;
  readonly silence: SilenceWatch;
  readonly pullKinds: readonly ChannelKindName[];
  readonly clock: Clock;
}

const AT_ONCE = 8;
const SOURCES_AT_ONCE = 32;
/** Maximum number of failing sources whose last error is included in the problem's message. */
const MOST_REASONS = 200;
const HOUR_MS = 3_600_000;

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

export async function findFailingChannels(deps: ChannelChecksDeps): Promise<readonly Sighting[]> {
  const { db, positions, states, pullKinds } = deps;
  const stopped = await listStoppedChannels(db);
  const sources = await listSources(db, pullKinds);
  const failures = new Map<number, number>();
  await mapBounded(sources, SOURCES_AT_ONCE, async ({ number, isWanted, state }) => {
    if (!isWanted || state !== "active") return;
    const count = await positions.failures(number);
    if (!levelOf(count, BOUNDS.failures)) return;
    // The count of a stream starts again only when its run ends. Its error is cleared as soon as the stream works.
    const { state: reported, lastError } = await states.read(number);
    if (reported !== "open" || lastError !== undefined) failures.set(number, count);
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
      ...channel,
      kind: "channel_failing",
      severity: "error",
      message: `${message}${reasons.get(number) ?? ""}.`,
      suggestedAction,
    };
  });
  for (const [number, channel] of named) {
    const count = failures.get(number) ?? 0;
    sightings.push({
      ...channel,
      kind: "channel_failing",
      level: levelOf(count, BOUNDS.failures),
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

export async function findSilentChannels(
  { db, silence }: ChannelChecksDeps,
  signal: AbortSignal,
): Promise<readonly Sighting[]> {
  const silent = new Map((await silence.check(signal)).map((one) => [one.number, one.expectEverySeconds]));
  const named = await nameChannels(db, [...silent.keys()]);
  return [...named].map(([number, channel]) => {
    const expectEverySeconds = silent.get(number) ?? 0;
    return {
      ...channel,
      kind: "channel_silent",
      severity: "warning",
      figures: { expectEverySeconds },
      message: `The channel got no event for more than ${formatDuration(expectEverySeconds)} (\`expectEverySeconds\`).`,
      suggestedAction:
        "Check that the sender still sends, and that it uses the channel's current address. Or increase `expectEverySeconds`.",
    };
  });
}

export async function checkQuarantine(
  { db, quarantine, clock }: ChannelChecksDeps,
  signal: AbortSignal,
): Promise<readonly Sighting[]> {
  const sightings: Sighting[] = [];
  for await (const page of pageOrganizations(db)) {
    await mapBounded(page, AT_ONCE, async ({ id: organizationId }) => {
      signal.throwIfAborted();
      const { totalBytes, limitBytes, keptBytes } = await quarantine.usage(organizationId);
      sightings.push(...findNearLimit(ofOrganization(organizationId), totalBytes, limitBytes));
      for (const [number, channel] of await nameChannels(db, [...keptBytes.keys()])) {
        sightings.push(...findNearLimit(channel, keptBytes.get(number) ?? 0, QUARANTINE_LIMITS.channelBytes));
        const items = await quarantine.countKept(organizationId, number, clock() - HOUR_MS);
        const level = levelOf(items, BOUNDS.quarantinedAnHour);
        if (!level) continue;
        sightings.push({
          ...channel,
          kind: "quarantine_growing",
          level,
          severity: "warning",
          figures: { itemsInAnHour: items },
          message: `${formatCount(items, "item")} of the channel went to quarantine within an hour.`,
          suggestedAction:
            "Check the reasons in the channel's quarantine. Fix the channel's definitions or its sender, then redrive the items.",
        });
      }
    });
  }
  return sightings;
}

/** Returns a sighting if the quarantine of an organization or channel is almost full, otherwise an empty list. */
function findNearLimit(subject: Named, bytes: number, limitBytes: number): readonly Sighting[] {
  const level = levelOf(bytes / limitBytes, BOUNDS.part);
  if (!level) return [];
  return [
    {
      ...subject,
      kind: "quarantine_near_limit",
      level,
      severity: "error",
      figures: { bytes, limitBytes },
      message: `Quarantine uses ${formatPercent(bytes / limitBytes)} of its limit. Above the limit, deliveries with items for quarantine get 503.`,
      suggestedAction:
        "Fix the cause of the failed items. Then redrive the items in quarantine, or delete them.",
    },
  ];
}
