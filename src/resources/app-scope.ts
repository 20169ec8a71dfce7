import type { Context } from "hono";
import type { Queryable } from "../data/database.ts";
import type { ApiEnv } from "../http/context.ts";
import { notFound } from "../http/problem.ts";
import { pathParam } from "./plain.ts";

/** Which app of whose: what is below an app is looked up within both. */
export interface AppScope {
  readonly organizationId: string;
  readonly appId: string;
}

/** The caller's organization and the app in the path, which need not be there. */
export const appScopeOf = (c: Context<ApiEnv>): AppScope => ({
  organizationId: c.get("caller").organizationId,
  appId: pathParam(c, "appId"),
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
