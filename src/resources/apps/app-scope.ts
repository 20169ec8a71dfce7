import { z } from "zod";
import type { Queryable } from "../../data/database.ts";
import type { AppRow } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import { conflict } from "../../http/problem.ts";
import { pathId } from "../kit/params.ts";
import { APPS, getRow, type Lock } from "../kit/references.ts";
import type { CountedRows } from "../kit/row-limit.ts";

/** All channels of an organization, except those of the system app. */
export const COUNTED_CHANNELS: CountedRows = {
  table: "channels",
  words: "channels",
  inside: { table: "apps", column: "appId" },
  omitsSystem: true,
};

/** The app and organization in which a request's objects are looked up. */
export interface AppScope {
  readonly organizationId: string;
  readonly appId: string;
}

/** Path parameters of an app's routes. Routes below the app extend them. */
export const appParams = { appId: pathId("app", "app") } as const;

/** Returns the scope of a request, without checking that the app exists. */
export const appScopeOf = ({ organizationId }: Caller, { appId }: { readonly appId: string }): AppScope => ({
  organizationId,
  appId,
});

/** @throws ApiError 404 if the organization has no such app */
export const requireApp = (db: Queryable, scope: AppScope, lock?: Lock): Promise<AppRow> =>
  getRow(db, scope, APPS, scope.appId, lock);

/** Returns an app that the caller may change. @throws ApiError 404; 409 for the system app */
export async function requireOwnApp(db: Queryable, scope: AppScope, lock?: Lock): Promise<AppRow> {
  const app = await requireApp(db, scope, lock);
  rejectSystemApp(app);
  return app;
}

/** @throws ApiError 409 for the system app or its channel, because Inlet manages them */
export function rejectSystemApp({ isSystem }: { readonly isSystem: boolean }): void {
  if (isSystem)
    throw conflict(
      "Inlet manages the system app `inlet`. You can read it and subscribe to it, but not delete or upgrade it, or change its channels.",
    );
}

/** Condition of a 409 in the API reference, for routes that change an app or a channel. */
export const SYSTEM_APP_CONFLICT = "the app is the system app, which Inlet manages";

/** Query parameter `purge` of deletions. */
export const purgeQuerySchema = z.object({
  purge: z
    .enum(["true", "false"])
    .describe("Whether to delete the published events too.")
    .default("false")
    .transform((purge) => purge === "true"),
});
