import type { Outcome } from "../../event/outcome.ts";
import type { VerifiedDelivery } from "../../event/received.ts";
import type { CompiledChannel } from "../compile-channel.ts";
import type { HookLimits } from "../hook-limits.ts";
import type { Routes } from "./compile-routing.ts";

export type RouteLimits = Pick<HookLimits, "checkVerified" | "countItems">;

/** `outcome` has the counts of all groups. It lists no events, because the sender may not learn the topics of the installs. */
export type RouteResult =
  | { readonly kind: "routed"; readonly outcome: Outcome }
  | { readonly kind: "tooManyItems"; readonly limit: number };

/**
 * Routes the items of an intake's delivery to the installs of its blueprint.
 *
 * @throws UnavailableError if the result of a group is uncertain. Other groups may have been written.
 */
export type Route = (
  intake: CompiledChannel,
  routes: Routes,
  delivery: VerifiedDelivery,
  limits: RouteLimits,
) => Promise<RouteResult>;
