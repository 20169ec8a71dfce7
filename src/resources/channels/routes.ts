import { type Context, Hono } from "hono";
import { type EntityDeps, renderChannel } from "../../channels/entity.ts";
import {
  type ChannelSettings,
  type CheckedSettings,
  channelInputSchema,
  checkSettings,
  type SettingsDeps,
} from "../../channels/settings.ts";
import { openSettings } from "../../data/channel-secrets.ts";
import { updateChannel } from "../../data/channels.ts";
import type { Queryable } from "../../data/database.ts";
import type { Keyring } from "../../data/keyring.ts";
import type { ApiEnv } from "../../http/context.ts";
import { answerList, pageQuerySchema } from "../../http/page.ts";
import { invalidParameters, notFound } from "../../http/problem.ts";
import type { Clock } from "../../lib/clock.ts";
import { mergePatch } from "../../lib/merge-patch.ts";
import { type PlainResource, parseBody, parseQuery, pathParam } from "../plain.ts";
import { parseInput, writeOnce } from "../resource.ts";
import { type AppRef, addChannel, findChannel, listChannels, removeChannel, requireApp } from "./queries.ts";
import { channelContentSchema, channelPatchSchema, purgeQuerySchema } from "./schema.ts";

export interface ChannelDeps extends SettingsDeps, EntityDeps {
  readonly db: Queryable;
  readonly keyring: Keyring;
  readonly clock: Clock;
  /** Told after a deletion is committed: the time to clear away what it leaves on the bus. */
  readonly onDeleted: () => Promise<void>;
}

/** The channels of an app. */
export const channels: PlainResource<ChannelDeps> = {
  path: "/apps/:appId/channels",
  create(deps) {
    const { db, keyring, clock } = deps;
    const routes = new Hono<ApiEnv>();

    routes.post("/", async (c) => {
      const input = await parseBody(c, channelInputSchema);
      const settings = await requireSettings(deps, input);
      const channel = { ...settings, uid: input.uid, title: input.title };
      const row = await addChannel(db, appRef(c), channel, { keyring, nowMs: clock() });
      return c.json(renderChannel(deps, row));
    });

    routes.get("/", async (c) => {
      const page = parseQuery(c, pageQuerySchema);
      await requireApp(db, appRef(c));
      const { items, total } = await listChannels(db, appRef(c), page);
      return answerList(c, { items: items.map((row) => renderChannel(deps, row)), total });
    });

    routes.get("/:channelId", async (c) => {
      const row = await findChannel(db, appRef(c), c.req.param("channelId"));
      if (!row) throw notFound("channel");
      return c.json(renderChannel(deps, row));
    });

    routes.put("/:channelId", async (c) => {
      const patch = await parseBody(c, channelPatchSchema);
      const updated = await writeOnce(async () => {
        const row = await findChannel(db, appRef(c), c.req.param("channelId"));
        if (!row) throw notFound("channel");
        const config = { ...row.config, ...openSettings(keyring, row) };
        const merged = mergePatch({ title: row.title, config, events: row.events }, patch);
        const { title, ...written } = parseInput(channelContentSchema, merged);
        const settings = await requireSettings(deps, { ...written, kind: row.kind });
        const context = { keyring, nowMs: clock() };
        return db.transaction().execute((trx) => updateChannel(trx, row, { ...settings, title }, context));
      });
      return c.json(renderChannel(deps, updated));
    });

    routes.delete("/:channelId", async (c) => {
      const { purge } = parseQuery(c, purgeQuerySchema);
      const id = c.req.param("channelId");
      const removed = await removeChannel(db, appRef(c), id, { purge, nowMs: clock() });
      if (!removed) throw notFound("channel");
      // It is deleted, whatever becomes of this; what it leaves is noted.
      await deps.onDeleted().catch(() => {});
      return c.json({ id });
    });

    return routes;
  },
};

const appRef = (c: Context<ApiEnv>): AppRef => ({
  organizationId: c.get("caller").organizationId,
  appId: pathParam(c, "appId"),
});

/** @throws ApiError 400 that names each setting that does not fit. */
async function requireSettings(deps: SettingsDeps, settings: ChannelSettings): Promise<CheckedSettings> {
  const checked = await checkSettings(deps, settings);
  if (!checked.ok) throw invalidParameters(checked.error);
  return checked.value;
}
