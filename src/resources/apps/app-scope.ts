import { z } from "zod";
import type { Queryable } from "../../data/database.ts";
import type { AppRow } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import { pathId } from "../kit/params.ts";
import { APPS, getRow, type Lock } from "../kit/references.ts";

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

/** `?purge=true`: what was published goes with what is deleted. */
export const purgeQuerySchema = z.object({
  purge: z
    .enum(["true", "false"])
    .default("false")
    .transform((purge) => purge === "true"),
});
