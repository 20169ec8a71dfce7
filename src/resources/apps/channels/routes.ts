import { isDeepStrictEqual } from "node:util";
import type { Context } from "hono";
import { findChannelChanges } from "../../../channels/channel-changes.ts";
import { type CheckedChannel, checkChannel, type UncheckedChannel } from "../../../channels/check-channel.ts";
import { ADDRESS_PERMISSION, type Channel, channelSchema, renderChannels } from "../../../channels/entity.ts";
import { recordChannelAudit } from "../../../data/accounts/audit.ts";
import { openSecrets } from "../../../data/channels/channel-secrets.ts";
import { deleteChannel, updateChannel } from "../../../data/channels/channels.ts";
import type { ChannelRow } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { invalidParameters } from "../../../http/errors.ts";
import { deleted } from "../../../http/fields.ts";
import { pageQuerySchema } from "../../../http/page.ts";
import { requireMatch, showVersion, type Versioned } from "../../../http/version.ts";
import { mergePatch } from "../../../lib/json/merge-patch.ts";
import { listOf } from "../../kit/answer.ts";
import type { Deps } from "../../kit/deps.ts";
import { listPage } from "../../kit/list-page.ts";
import { parseInput, type Resource, retryVersionConflicts } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { ROW_LIMIT_CONFLICT } from "../../kit/row-limit.ts";
import { channelParams, getChannel, getVisibleName } from "../app-channel.ts";
import {
  appScopeOf,
  purgeQuerySchema,
  rejectSystemApp,
  requireApp,
  SYSTEM_APP_CONFLICT,
} from "../app-scope.ts";
import { requireConnection } from "../channel-connection.ts";
import { requireRegistration } from "../channel-registration.ts";
import { requireReconcilable } from "../reconcile.ts";
import { addChannel, writeChannel } from "./queries.ts";
import { channelContentSchema, channelPatchSchema, newChannelSchema } from "./schema.ts";
import { requireWakes } from "./wakes.ts";

export const channels: Resource = {
  tag: "Channels",
  params: channelParams,
  routes: (deps) => [
    defineRoute({
      at: "POST /apps/:appId/channels",
      operation: "createChannel",
      summary: "Add a channel to an app",
      body: newChannelSchema,
      answer: channelSchema,
      reveals: ADDRESS_PERMISSION,
      creates: true,
      versioned: true,
      missing: "the app or connection does not exist",
      conflict: `the app already has a channel with this uid; ${SYSTEM_APP_CONFLICT}; or ${ROW_LIMIT_CONFLICT}`,
      async handle({ caller, params, body, c }) {
        const { uid, title, connectionId } = body;
        const checked = await requireValidChannel(deps, caller, body);
        await requireWakes(deps, appScopeOf(caller, params), checked.config);
        await requireReconcilable(deps, appScopeOf(caller, params), { ...checked, uid });
        await requireConnection(deps, caller, checked, connectionId);
        await requireRegistration(deps, caller, checked.config);
        const channel = { ...checked, uid, title, connectionId };
        const context = { keyring: deps.keyring, nowMs: deps.clock(), requireRoom: deps.requireRoom };
        const row = await addChannel(deps.db, caller, appScopeOf(caller, params), channel, context);
        return showChannel(deps, c, caller, row);
      },
    }),
    defineRoute({
      at: "GET /apps/:appId/channels",
      operation: "listChannels",
      summary: "List the channels of an app",
      query: pageQuerySchema,
      answer: listOf(channelSchema),
      reveals: ADDRESS_PERMISSION,
      async handle({ caller, params, query }) {
        await requireApp(deps.db, appScopeOf(caller, params));
        const all = deps.db.selectFrom("channels").selectAll().where("appId", "=", params.appId);
        const { items, total } = await listPage(all, query, ["number"]);
        return { items: await renderChannels(deps, caller, items), total };
      },
    }),
    defineRoute({
      at: "GET /apps/:appId/channels/:channelId",
      operation: "getChannel",
      summary: "Get a channel",
      answer: channelSchema,
      reveals: ADDRESS_PERMISSION,
      versioned: true,
      async handle({ caller, params, c }) {
        const row = await getChannel(deps.db, deps.keyring, appScopeOf(caller, params), params.channelId);
        return showChannel(deps, c, caller, row);
      },
    }),
    defineRoute({
      at: "PUT /apps/:appId/channels/:channelId",
      operation: "updateChannel",
      summary: "Change a channel",
      description: "Takes effect within two seconds. Secret settings that you do not send are kept.",
      body: channelPatchSchema,
      answer: channelSchema,
      reveals: ADDRESS_PERMISSION,
      versioned: true,
      missing: "the channel or connection does not exist",
      conflict: SYSTEM_APP_CONFLICT,
      async handle({ caller, params, body, c }) {
        const { db, keyring, clock } = deps;
        const updated = await retryVersionConflicts(async () => {
          const row = await getChannel(db, keyring, appScopeOf(caller, params), params.channelId);
          rejectSystemApp(row);
          const secrets = openSecrets(keyring, row);
          const config = { ...row.config, ...secrets };
          const { title: titleBefore, events, connectionId: connectionBefore } = row;
          const before = { title: titleBefore, config, events, connectionId: connectionBefore };
          const { title, connectionId, ...given } = parseInput(
            channelContentSchema,
            mergePatch(before, body),
          );
          const checked = await requireValidChannel(deps, caller, {
            ...given,
            kind: row.kind,
            storedSecrets: secrets,
          });
          await requireWakes(deps, appScopeOf(caller, params), checked.config, row.config);
          await requireReconcilable(deps, appScopeOf(caller, params), { ...checked, uid: row.uid });
          await requireConnection(deps, caller, checked, connectionId);
          const isSamePreset = checked.config.preset === row.config.preset;
          if (!isSamePreset || !isDeepStrictEqual(checked.config.registration, row.config.registration))
            await requireRegistration(deps, caller, checked.config);
          requireMatch(c, toVersion(row));
          const context = { keyring, nowMs: clock() };
          const content = { ...checked, title, connectionId };
          const { plain, secret } = findChannelChanges(row, secrets, content);
          return db.transaction().execute(async (trx) => {
            const written = await updateChannel(trx, row, content, context);
            const fields = [...plain, ...secret];
            if (written) await recordChannelAudit(trx, caller, "update", written, context.nowMs, fields);
            return written;
          });
        });
        return showChannel(deps, c, caller, updated);
      },
    }),
    defineRoute({
      at: "DELETE /apps/:appId/channels/:channelId",
      operation: "deleteChannel",
      summary: "Delete a channel",
      description:
        "The channel's address stops working within two seconds. Also deletes the channel's quarantine and secrets. Published events stay until their retention ends. With `purge`, they are deleted too.",
      query: purgeQuerySchema,
      answer: deleted,
      reveals: ADDRESS_PERMISSION,
      versioned: true,
      conflict: SYSTEM_APP_CONFLICT,
      async handle({ caller, params, query, c }) {
        const options = { purge: query.purge, nowMs: deps.clock() };
        const scope = appScopeOf(caller, params);
        const id = await writeChannel(deps, scope, params.channelId, async (trx, row) => {
          requireMatch(c, toVersion(row));
          await deleteChannel(trx, row, options);
          await recordChannelAudit(trx, caller, "delete", row, options.nowMs);
          return getVisibleName(deps.keyring, caller, row);
        });
        // The channel is already deleted from PostgreSQL. If the cleanup in Redis fails, a background job retries the cleanup.
        await deps.onDeleted().catch(() => {});
        return { id };
      },
    }),
  ],
};

/**
 * Responds with the channel. The `ETag` also covers the state reason and the visibility of the address, which can
 * change without a new row version.
 */
async function showChannel(deps: Deps, c: Context, caller: Caller, row: ChannelRow): Promise<Channel> {
  const channel = await renderOne(deps, caller, row);
  const { stateReason, id } = channel;
  const variant = [stateReason, id === null ? "noAddress" : null].filter((one) => one !== null).join("_");
  showVersion(c, { ...toVersion(row), variant: variant === "" ? null : variant });
  return channel;
}

/** The `ETag` uses the internal channel id, because the public id is a secret address that can change. */
const toVersion = ({ number, version }: ChannelRow): Versioned => ({ id: `channel${number}`, version });

export async function renderOne(deps: Deps, caller: Caller, row: ChannelRow): Promise<Channel> {
  const [channel] = await renderChannels(deps, caller, [row]);
  if (!channel) throw new Error("renderChannels returned no channel");
  return channel;
}

/** Validates the channel's config. @throws ApiError 400 that lists each invalid field */
async function requireValidChannel(
  deps: Deps,
  { organizationId }: Caller,
  channel: UncheckedChannel,
): Promise<CheckedChannel> {
  const checked = await checkChannel(deps, channel, organizationId);
  if (!checked.ok) throw invalidParameters(checked.error);
  return checked.value;
}
