import { z } from "zod";
import type { Queryable } from "../../data/database.ts";
import type { AppRow } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import { conflict } from "../../http/errors.ts";
import { pathId } from "../kit/params.ts";
import { APPS, getRow, type Lock } from "../kit/references.ts";
import type { CountedRows } from "../kit/row-limit.ts";

/** Channels that count toward an organization's row limit. The channel of the built-in system app does not count. */
export const COUNTED_CHANNELS: CountedRows = {
  table: "channels",
  words: "channels",
  inside: { table: "apps", column: "appId" },
  omitsSystem: true,
};

export interface AppScope {
  readonly organizationId: string;
  readonly appId: string;
}

export const appParams = { appId: pathId("app", "app") };
export const subscriptionParams = { ...appParams, subscriptionId: pathId("sub", "subscription") };

/** Reads the scope from a request. Does not check that the app exists or belongs to the organization. */
export const appScopeOf = ({ organizationId }: Caller, { appId }: { readonly appId: string }): AppScope => ({
  organizationId,
  appId,
});

/** Reads an app. @throws ApiError 404 if the organization has no such app */
export const requireApp = (db: Queryable, scope: AppScope, lock?: Lock): Promise<AppRow> =>
  getRow(db, scope, APPS, scope.appId, lock);

/** Reads an app that the caller may change. @throws ApiError 404 if the organization has no such app; 409 for the built-in system app */
export async function requireOwnApp(db: Queryable, scope: AppScope, lock?: Lock): Promise<AppRow> {
  const app = await requireApp(db, scope, lock);
  rejectSystemApp(app);
  return app;
}

/** Rejects changes to the built-in system app and its channel. @throws ApiError 409 */
export function rejectSystemApp({ isSystem }: { readonly isSystem: boolean }): void {
  if (isSystem)
    throw conflict(
      "Inlet manages the system app `inlet`. You can read it and subscribe to it, but not delete or upgrade it, or change its channels.",
    );
}

/** Reason for a 409 response of routes that change an app or a channel, as shown in the API reference. */
export const SYSTEM_APP_CONFLICT = "the app is the system app, which Inlet manages";

export const purgeQuerySchema = z.object({
  purge: z
    .enum(["true", "false"])
    .describe("Whether to delete the published events too.")
    .default("false")
    .transform((purge) => purge === "true"),
});
