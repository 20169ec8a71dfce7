import type { unchosenDurability } from "../../bus/connection/durability.ts";
import {
  findOperator,
  listAtRisk,
  listDataLoss,
  listFailingHandlers,
  listTroubledConnections,
  nameActive,
  ofOrganization,
} from "../../data/problems/affected-objects.ts";
import type { Sighting } from "../../data/problems/problems.ts";
import { describeFailure } from "../../event/handler-failure.ts";
import type { ProblemKind } from "../../event/problem.ts";
import { formatTimestamp } from "../../lib/clock.ts";
import { formatCount, formatDuration } from "../../lib/quantities.ts";
import type { Backlog } from "../backlogs.ts";
import type { Housekeeper } from "../housekeeper.ts";
import { BOUNDS, formatPercent, levelOf } from "./bounds.ts";
import {
  type ChannelChecksDeps,
  checkQuarantine,
  findFailingChannels,
  findSilentChannels,
} from "./channel-checks.ts";
import type { createDriftWatch } from "./drift-watch.ts";
import type { createIntakeWatch } from "./intake-watch.ts";
import { findMissedDeliveries } from "./missed-checks.ts";
import { findTroubledRegistrations, type RegistrationChecksDeps } from "./registration-checks.ts";

export type ChecksDeps = ChannelChecksDeps &
  RegistrationChecksDeps &
  Pick<Housekeeper, "topicHoldings" | "backlogsById"> & {
    readonly drift: Pick<ReturnType<typeof createDriftWatch>, "find">;
    readonly intakes: Pick<ReturnType<typeof createIntakeWatch>, "find">;
    /** Returns a warning if no durability level was chosen. */
    readonly durabilityWarning: () => ReturnType<typeof unchosenDurability> | undefined;
  };

/** Detects problems of the given kinds. If `look` throws, open problems of these kinds stay open. */
export interface Check {
  readonly kinds: readonly ProblemKind[];
  /** Whether the check needs many Redis queries. Slow checks run less often. */
  readonly isSlow?: boolean;
  /** Returns the problems found. Returns `undefined` if the required data is unavailable. */
  readonly look: (signal: AbortSignal) => Promise<readonly Sighting[] | undefined>;
}

export const createChecks = (deps: ChecksDeps): readonly Check[] => [
  { kinds: ["channel_failing"], isSlow: true, look: () => findFailingChannels(deps) },
  { kinds: ["channel_silent"], isSlow: true, look: (signal) => findSilentChannels(deps, signal) },
  { kinds: ["connection_failing", "connection_needs_reauth"], look: () => findTroubledConnections(deps) },
  { kinds: ["data_lost"], isSlow: true, look: () => findDataLoss(deps) },
  {
    kinds: ["deliveries_missed", "reconcile_mismatch"],
    isSlow: true,
    look: () => findMissedDeliveries(deps),
  },
  { kinds: ["durability_not_chosen"], look: () => checkDurability(deps) },
  { kinds: ["handler_failing"], look: () => findFailingHandlers(deps) },
  { kinds: ["intake_overflow"], isSlow: true, look: (signal) => deps.intakes.find(signal) },
  {
    kinds: ["quarantine_growing", "quarantine_near_limit"],
    isSlow: true,
    look: (signal) => checkQuarantine(deps, signal),
  },
  {
    kinds: ["registration_failed", "registration_lapsed", "registration_orphaned"],
    look: () => findTroubledRegistrations(deps),
  },
  { kinds: ["retention_at_risk"], look: () => findRetentionAtRisk(deps) },
  { kinds: ["schema_drift"], isSlow: true, look: (signal) => deps.drift.find(signal) },
  { kinds: ["storage_near_limit"], look: () => checkStorage(deps) },
  { kinds: ["subscription_lagging"], look: () => findLags(deps) },
];

async function findTroubledConnections({ db }: ChecksDeps): Promise<readonly Sighting[]> {
  const found = await listTroubledConnections(db);
  return found.map(({ state, ...connection }) => ({
    ...connection,
    severity: "error",
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

async function findFailingHandlers({ db }: ChecksDeps): Promise<readonly Sighting[]> {
  const found = await listFailingHandlers(db);
  return found.map(({ isGone, error, ...subscription }) => ({
    ...subscription,
    kind: "handler_failing",
    severity: "error",
    message: error ? describeFailure(error) : "The handler of the subscription is failing.",
    suggestedAction: isGone
      ? "Set the handler's new address, or resume the subscription if the handler works again."
      : "Fix the handler. Failed events are retried for 24 hours, then moved to dead letters.",
  }));
}

async function findRetentionAtRisk({ db }: ChecksDeps): Promise<readonly Sighting[]> {
  const found = await listAtRisk(db);
  return found.map((subscription) => ({
    ...subscription,
    kind: "retention_at_risk",
    severity: "error",
    message: "Retention will soon trim events that the subscription has not read.",
    suggestedAction:
      "Start the subscription's readers or add more of them. Or increase `retention` of the channels that it covers.",
  }));
}

/** Reports a data loss to each organization that had a channel at that time, for one day. */
async function findDataLoss({ db }: ChecksDeps): Promise<readonly Sighting[]> {
  return (await listDataLoss(db)).map(({ lostAt, ...organization }) => ({
    ...organization,
    kind: "data_lost",
    severity: "error",
    message: `Redis lost data (noticed at ${formatTimestamp(lostAt.getTime())}). Events that were not yet read may be missing, and sources may have lost their positions.`,
    suggestedAction:
      "Send the missing events again, or replay them at the sender. Ask the operator to turn on the append-only file of Redis, and to restore a backup if there is one.",
  }));
}

/** Reports to the operator's organization that no durability level was chosen. */
async function checkDurability({ db, durabilityWarning }: ChecksDeps): Promise<readonly Sighting[]> {
  const warning = durabilityWarning();
  const operator = warning && (await findOperator(db));
  return operator ? [{ ...operator, ...warning, kind: "durability_not_chosen", severity: "warning" }] : [];
}

/** Returns `undefined` if storage was not measured recently. */
async function checkStorage({ topicHoldings }: ChecksDeps): Promise<readonly Sighting[] | undefined> {
  const holdings = topicHoldings();
  if (!holdings) return undefined;
  return [...holdings].flatMap(([organizationId, { bytes, limit, waits }]): readonly Sighting[] => {
    const isOver = bytes > limit;
    const level = waits ? "raised" : levelOf(bytes / limit, BOUNDS.part);
    if (!level) return [];
    return [
      {
        ...ofOrganization(organizationId),
        kind: "storage_near_limit",
        level,
        severity: isOver || waits ? "error" : "warning",
        figures: { bytes, limitBytes: limit },
        message: isOver
          ? "The organization's topics exceed their storage limit. New deliveries get 429 and sources wait, unless `overLimit` is `trim`."
          : waits
            ? "Redis is nearly full, and the organization is one of its largest users. New deliveries get 429 and sources wait."
            : `The organization's topics use ${formatPercent(bytes / limit)} of their storage limit.`,
        suggestedAction:
          "Make sure that readers acknowledge events, or shorten `retention` of large topics. Or ask the operator for a higher limit or more Redis memory.",
      },
    ];
  });
}

/** Returns `undefined` if the unread events were not counted recently. */
async function findLags({ db, backlogsById }: ChecksDeps): Promise<readonly Sighting[] | undefined> {
  const backlogs = backlogsById();
  if (!backlogs) return undefined;
  const behind = [...backlogs.values()].filter(levelOfLag).map(({ subscription }) => subscription);
  const named = await nameActive(db, behind);
  return [...named].flatMap(([id, subscription]): readonly Sighting[] => {
    const backlog = backlogs.get(id);
    if (!backlog) return [];
    const { lag } = backlog;
    const lagSeconds = Math.floor(backlog.lagSeconds);
    return [
      {
        ...subscription,
        kind: "subscription_lagging",
        level: levelOfLag(backlog),
        severity: "warning",
        figures: { lag, lagSeconds },
        message: `The subscription has ${formatCount(lag, "unread event")}. The oldest has waited for ${formatDuration(lagSeconds)}.`,
        suggestedAction:
          "Start the subscription's readers or add more of them. For a handler, increase `concurrency`.",
      },
    ];
  });
}

function levelOfLag({ lag, lagSeconds }: Pick<Backlog, "lag" | "lagSeconds">) {
  const levels = [levelOf(lag, BOUNDS.lag), levelOf(lagSeconds, BOUNDS.lagSeconds)];
  return levels.includes("raised") ? "raised" : levels.find((level) => level !== undefined);
}
