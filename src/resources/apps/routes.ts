import { Hono } from "hono";
import { type EntityDeps, renderChannel } from "../../channels/entity.ts";
import { checkSettings, type SettingsDeps } from "../../channels/settings.ts";
import type { NewChannel } from "../../data/channels.ts";
import type { Queryable } from "../../data/database.ts";
import type { Keyring } from "../../data/keyring.ts";
import type { BlueprintRow } from "../../data/tables.ts";
import type { ApiEnv } from "../../http/context.ts";
import { findingUnder } from "../../http/findings.ts";
import { answerList, pageQuerySchema } from "../../http/page.ts";
import { ApiError, invalidParameters, notFound } from "../../http/problem.ts";
import type { Clock } from "../../lib/clock.ts";
import { mergePatch } from "../../lib/merge-patch.ts";
import { type PlainResource, parseBody, parseQuery } from "../plain.ts";
import { parseInput } from "../resource.ts";
import { deleteApp, findApp, findInstallable, installApp, listApps, updateApp } from "./queries.ts";
import { appContentSchema, appPatchSchema, installSchema, purgeQuerySchema, renderApp } from "./schema.ts";

export interface AppDeps extends SettingsDeps, EntityDeps {
  readonly db: Queryable;
  readonly keyring: Keyring;
  readonly clock: Clock;
  /** Told after a deletion is committed: the time to clear away what it leaves on the bus. */
  readonly onDeleted: () => Promise<void>;
}

/** Apps: installs of blueprints. */
export const apps: PlainResource<AppDeps> = {
  path: "/apps",
  create(deps) {
    const { db, keyring, clock } = deps;
    const routes = new Hono<ApiEnv>();

    routes.post("/install", async (c) => {
      const { organizationId, defaultSpaceId } = c.get("caller");
      const input = await parseBody(c, installSchema);
      const spaceId = input.spaceId ?? defaultSpaceId;
      if (spaceId === null) {
        throw invalidParameters([{ path: "spaceId", message: "is needed: the key has no default space" }]);
      }
      // There are no artifacts to name.
      if (input.blueprintId === undefined) throw notFound("artifact");
      const blueprint = await findInstallable(db, organizationId, input.blueprintId);
      if (!blueprint) throw notFound("blueprint");
      const { uid, title, description, id: blueprintId } = blueprint;
      const installed = await installApp(
        db,
        { uid, title, description, blueprintId, organizationId, spaceId },
        await channelsOf(deps, blueprint),
        { keyring, nowMs: clock() },
      );
      const channels = installed.channels.map((row) => renderChannel(deps, row));
      return c.json({ ...renderApp(installed.app), channels });
    });

    routes.get("/", async (c) => {
      const page = parseQuery(c, pageQuerySchema);
      const { items, total } = await listApps(db, c.get("caller").organizationId, page);
      return answerList(c, { items: items.map(renderApp), total });
    });

    routes.get("/:appId", async (c) => {
      const row = await findApp(db, c.get("caller").organizationId, c.req.param("appId"));
      if (!row) throw notFound("app");
      return c.json(renderApp(row));
    });

    routes.put("/:appId", async (c) => {
      const patch = await parseBody(c, appPatchSchema);
      const ref = { organizationId: c.get("caller").organizationId, id: c.req.param("appId") };
      const row = await updateApp(
        db,
        ref,
        ({ title, description, projectId }) =>
          parseInput(appContentSchema, mergePatch({ title, description, projectId }, patch)),
        clock(),
      );
      if (!row) throw notFound("app");
      return c.json(renderApp(row));
    });

    routes.delete("/:appId", async (c) => {
      const { purge } = parseQuery(c, purgeQuerySchema);
      const ref = { organizationId: c.get("caller").organizationId, id: c.req.param("appId") };
      if (!(await deleteApp(db, ref, { purge, nowMs: clock() }))) throw notFound("app");
      // It is deleted, whatever becomes of this; what it leaves is noted.
      await deps.onDeleted().catch(() => {});
      return c.json({ id: ref.id });
    });

    return routes;
  },
};

/**
 * The blueprint's channels as they would be written now.
 *
 * @throws ApiError 409 when a kind no longer accepts what it did when the blueprint was written.
 */
async function channelsOf(deps: SettingsDeps, blueprint: BlueprintRow): Promise<readonly NewChannel[]> {
  const channels: NewChannel[] = [];
  for (const [index, { uid, title, ...settings }] of blueprint.channels.entries()) {
    const checked = await checkSettings(deps, settings);
    if (!checked.ok) {
      const details = checked.error.map((finding) => findingUnder(`channels[${index}]`, finding));
      throw new ApiError("conflict", "The blueprint must be changed before it can be installed.", {
        details,
      });
    }
    channels.push({ ...checked.value, uid, title });
  }
  return channels;
}
