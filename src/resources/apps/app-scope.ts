import { z } from "zod";
import type { Queryable } from "../../data/database.ts";
import type { AppRow } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import { conflict } from "../../http/problem.ts";
import { pathId } from "../kit/params.ts";
import { APPS, getRow, type Lock } from "../kit/references.ts";
import type { CountedRows } from "../kit/row-limit.ts";

/** Of all apps of an organization but its system app. */
export const COUNTED_CHANNELS: CountedRows = {
  table: "channels",
  words: "channels",
  inside: { table: "apps", column: "appId" },
  omitsSystem: true,
};

/** Which app of whose: what is below an app is looked up within both. */
export interface AppScope {
  readonly organizationId: string;
  readonly appId: string;
}

/** The app in a path; extend it by what is below it. */
export const appParams = { appId: pathId("app", "app") } as const;

/** The caller's organization and the app in the path, which need not be there. */
export const appScopeOf = ({ organizationId }: Caller, { appId }: { readonly appId: string }): AppScope => ({
  organizationId,
  appId,
});

/** @throws ApiError 404 where the organization has no such app */
export const requireApp = (db: Queryable, scope: AppScope, lock?: Lock): Promise<AppRow> =>
  getRow(db, scope, APPS, scope.appId, lock);

/** The same of an app that is to be changed. @throws ApiError 404; 409 where it is the system app */
export async function requireOwnApp(db: Queryable, scope: AppScope, lock?: Lock): Promise<AppRow> {
  const app = await requireApp(db, scope, lock);
  refuseSystem(app);
  return app;
}

/** @throws ApiError 409 for the system app and its channel, which are Inlet's own */
export function refuseSystem({ isSystem }: { readonly isSystem: boolean }): void {
  if (isSystem)
    throw conflict(
      "The app `inlet` is Inlet's own: it can be read and subscribed to, and is not deleted, upgraded or given channels; its channel stays as it is.",
    );
}

/** When a change of an app or a channel answers 409 for it. */
export const IS_SYSTEM = "the app is the system app, which is Inlet's own";

/** `?purge=true`: what was published goes with what is deleted. */
export const purgeQuerySchema = z.object({
  purge: z
    .enum(["true", "false"])
    .default("false")
    .transform((purge) => purge === "true"),
});
