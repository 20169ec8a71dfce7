import type { Queryable } from "../../data/database.ts";
import type { Caller } from "../../http/context.ts";
import { notFound } from "../../http/problem.ts";
import { pathId } from "../kit/params.ts";

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
export async function requireApp(db: Queryable, { organizationId, appId }: AppScope): Promise<void> {
  const row = await db
    .selectFrom("apps")
    .select("id")
    .where("id", "=", appId)
    .where("organizationId", "=", organizationId)
    .executeTakeFirst();
  if (!row) throw notFound("app");
}
