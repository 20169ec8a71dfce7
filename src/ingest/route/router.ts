import type { QuarantineStore } from "../../bus/quarantine/quarantine.ts";
import { createDeliveryFailure, EMPTY_OUTCOME, type ItemFailure, type Outcome } from "../../event/outcome.ts";
import type { VerifiedDelivery } from "../../event/received.ts";
import { BudgetError } from "../../lib/errors.ts";
import type { NewId } from "../../lib/ids.ts";
import type { Metrics } from "../../metrics.ts";
import type { Routed, RouteGroup } from "../../normalize/route-items.ts";
import type { CompiledChannel } from "../compile-channel.ts";
import type { Conclude } from "../conclude.ts";
import type { Routes } from "./compile-routing.ts";
import { type DeliverGroup, LateValidationError, toDistinct } from "./deliver-group.ts";
import type { FindInstall } from "./find-install.ts";
import { hideCredentials } from "./hide-credentials.ts";
import { getKeep, REPLAYED_DETAIL, toBehindHeld, toNoInstall, toNoRoute } from "./hold-failures.ts";
import type { Route, RouteLimits } from "./route-result.ts";

export interface RouterDeps {
  readonly routeItems: (
    intake: CompiledChannel,
    routes: Routes,
    delivery: VerifiedDelivery,
  ) => Routed | Promise<Routed>;
  readonly findInstall: FindInstall;
  readonly deliverGroup: DeliverGroup;
  /** Makes later items of the key wait for those that the intake holds. */
  readonly markHeld: (intake: CompiledChannel, key: string) => Promise<void>;
  readonly quarantine: Pick<QuarantineStore, "put" | "hasHeld">;
  /** Remembers which route keys signed bytes had. Returns true if they had other ones before. */
  readonly isReplay: (
    intake: CompiledChannel,
    signedBytes: string,
    keys: readonly string[],
  ) => Promise<boolean>;
  readonly metrics: Pick<Metrics, "routedItems">;
  readonly countHeld: Conclude["countHeld"];
  readonly newDeliveryId: NewId;
}

const NEVER_ABORTED = { signal: new AbortController().signal };

/**
 * Creates the function that routes the items of an intake's delivery to the installs of its blueprint.
 *
 * Each group of items with one route key is a write of its own, in parallel. The function resolves when all are durable. If one fails, the
 * sender retries the whole delivery, and the groups that were written count as duplicates.
 */
export function createRouter(deps: RouterDeps): Route {
  const { findInstall, deliverGroup, quarantine, metrics } = deps;

  /** Stores items in the intake's quarantine. Items with a route key wait there for its install. */
  async function hold(
    intake: CompiledChannel,
    { key, delivery, items }: RouteGroup,
    failure: ItemFailure,
  ): Promise<Outcome> {
    const { identity } = intake;
    const write = {
      delivery: toDistinct(delivery, deps.newDeliveryId),
      items: [{ failure, keep: getKeep(failure) }],
      routeKey: key,
    };
    await quarantine.put(identity, write, NEVER_ABORTED);
    // Marks the key as held, so that an install that has just claimed it and other gateways release these items.
    if (key !== undefined) await deps.markHeld(intake, key);
    metrics.routedItems.add(identity.kind, failure.reason, items);
    deps.countHeld(intake, failure.reason, items);
    return { ...EMPTY_OUTCOME, received: items, quarantined: items };
  }

  async function send(intake: CompiledChannel, group: RouteGroup, limits: RouteLimits): Promise<Outcome> {
    const { key, delivery, items, failure } = group;
    if (key === undefined || failure !== undefined) return hold(intake, group, failure ?? toNoRoute());
    const install = await findInstall(intake, key);
    if (install === undefined) return hold(intake, group, toNoInstall(key));
    if (install.isHeld && (await quarantine.hasHeld(intake.identity, key)))
      return hold(intake, group, toBehindHeld(key));
    try {
      const outcome = await deliverGroup(install.channel, delivery, items, limits);
      metrics.routedItems.add(intake.identity.kind, "routed", items);
      return outcome;
    } catch (error) {
      if (!(error instanceof BudgetError || error instanceof LateValidationError)) throw error;
      const isFull = error instanceof BudgetError;
      const detail = isFull ? "the quarantine of the install's organization is full" : error.message;
      return hold(intake, group, createDeliveryFailure("over_limit", detail));
    }
  }

  return async (intake, routes, delivery, limits) => {
    const routed = await deps.routeItems(intake, routes, delivery);
    if (routed.kind === "tooManyItems") return routed;
    limits.countItems(intake, routed.received);
    const groups = hideCredentials(intake, delivery, routed.groups);
    if (routes.remembersKeys && delivery.boundTo !== undefined) {
      const keys = groups.map(({ key = "" }) => key).sort();
      if (await deps.isReplay(intake, delivery.boundTo, keys)) {
        const whole = { key: undefined, delivery, items: routed.received };
        const outcome = await hold(intake, whole, createDeliveryFailure("replayed", REPLAYED_DETAIL));
        return { kind: "routed", outcome };
      }
    }
    const settled = await Promise.allSettled(groups.map((group) => send(intake, group, limits)));
    const failed = settled.find((one) => one.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    const outcomes = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    return { kind: "routed", outcome: sumUp(routed.received, outcomes) };
  };
}

function sumUp(received: number, outcomes: readonly Outcome[]): Outcome {
  const sum = (count: (one: Outcome) => number): number =>
    outcomes.reduce((total, one) => total + count(one), 0);
  return {
    ...EMPTY_OUTCOME,
    received,
    published: sum(({ published }) => published),
    duplicates: sum(({ duplicates }) => duplicates),
    ignored: sum(({ ignored }) => ignored),
    quarantined: sum(({ quarantined }) => quarantined),
  };
}
