import type { Context } from "hono";
import { changedSettings } from "../../../channels/changed-settings.ts";
import { findUnfitConnection } from "../../../channels/connection.ts";
import {
  ADDRESS_PERMISSION,
  type Channel,
  channelSchema,
  type EntityDeps,
  renderChannels,
} from "../../../channels/entity.ts";
import {
  type ChannelSettings,
  type CheckedSettings,
  checkSettings,
  type SettingsDeps,
} from "../../../channels/settings.ts";
import { recordChannelAudit } from "../../../data/accounts/audit.ts";
import { openSettings } from "../../../data/channels/channel-secrets.ts";
import { deleteChannel, updateChannel } from "../../../data/channels/channels.ts";
import { findConnection } from "../../../data/connections/connections.ts";
import type { Keyring } from "../../../data/keyring/keyring.ts";
import type { ChannelRow } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { deleted } from "../../../http/fields.ts";
import { pageQuerySchema } from "../../../http/page.ts";
import { invalidParameters, notFound } from "../../../http/problem.ts";
import { requireMatch, showVersion, type Versioned } from "../../../http/version.ts";
import type { Clock } from "../../../lib/clock.ts";
import { mergePatch } from "../../../lib/json/merge-patch.ts";
import { listOf } from "../../kit/answer.ts";
import { parseInput, type Resource, retryVersionConflicts } from "../../kit/resource.ts";
import type { RowDeps } from "../../kit/resource-spec.ts";
import { defineRoute } from "../../kit/route.ts";
import { ROW_LIMIT_CONFLICT } from "../../kit/row-limit.ts";
import { channelParams, getChannel, shownName } from "../app-channel.ts";
import { appParams, appScopeOf, IS_SYSTEM, purgeQuerySchema, refuseSystem } from "../app-scope.ts";
import { addChannel, listChannels, writeChannel } from "./queries.ts";
import { channelContentSchema, channelPatchSchema, newChannelSchema } from "./schema.ts";

export interface ChannelDeps extends SettingsDeps, EntityDeps, RowDeps {
  readonly keyring: Keyring;
  readonly clock: Clock;
  /** Told after a deletion is committed: the time to clear away what it leaves on the bus. */
  readonly onDeleted: () => Promise<void>;
}

/** The channels of an app. */
export const channels: Resource<ChannelDeps> = {
  path: "/apps/:appId/channels",
  tag: "Channels",
  routes: (deps) => [
    defineRoute(
      {
        method: "post",
        path: "/",
        operation: "createChannel",
        summary: "Add a channel to an app",
        params: appParams,
        body: newChannelSchema,
        answer: channelSchema,
        reveals: ADDRESS_PERMISSION,
        creates: true,
        versioned: true,
        missing: "the app or the connection is not there",
        conflict: `the app has a channel of that uid; ${IS_SYSTEM}; or ${ROW_LIMIT_CONFLICT}`,
      },
      async ({ caller, params, body, c }) => {
        const { uid, title, connectionId } = body;
        const settings = await requireSettings(deps, caller, body);
        await requireConnection(deps, caller, settings, connectionId);
        const channel = { ...settings, uid, title, connectionId };
        const context = { keyring: deps.keyring, nowMs: deps.clock(), requireRoom: deps.requireRoom };
        const row = await addChannel(deps.db, caller, appScopeOf(caller, params), channel, context);
        return showChannel(deps, c, caller, row);
      },
    ),
    defineRoute(
      {
        method: "get",
        path: "/",
        operation: "listChannels",
        summary: "List the channels of an app",
        params: appParams,
        query: pageQuerySchema,
        answer: listOf(channelSchema),
        reveals: ADDRESS_PERMISSION,
      },
      async ({ caller, params, query }) => {
        const { items, total } = await listChannels(deps.db, appScopeOf(caller, params), query);
        return { items: await renderChannels(deps, caller, items), total };
      },
    ),
    defineRoute(
      {
        method: "get",
        path: "/:channelId",
        operation: "getChannel",
        summary: "Get a channel",
        params: channelParams,
        answer: channelSchema,
        reveals: ADDRESS_PERMISSION,
        versioned: true,
      },
      async ({ caller, params, c }) => {
        const row = await getChannel(deps.db, deps.keyring, appScopeOf(caller, params), params.channelId);
        return showChannel(deps, c, caller, row);
      },
    ),
    defineRoute(
      {
        method: "put",
        path: "/:channelId",
        operation: "updateChannel",
        summary: "Change a channel",
        description:
          "In force everywhere within two seconds. Secret settings are kept where they are not sent.",
        params: channelParams,
        body: channelPatchSchema,
        answer: channelSchema,
        reveals: ADDRESS_PERMISSION,
        versioned: true,
        missing: "the channel or the connection is not there",
        conflict: IS_SYSTEM,
      },
      async ({ caller, params, body, c }) => {
        const { db, keyring, clock } = deps;
        const updated = await retryVersionConflicts(async () => {
          const row = await getChannel(db, keyring, appScopeOf(caller, params), params.channelId);
          refuseSystem(row);
          const secrets = openSettings(keyring, row);
          const config = { ...row.config, ...secrets };
          const { title: titleBefore, events, connectionId: connectionBefore } = row;
          const before = { title: titleBefore, config, events, connectionId: connectionBefore };
          const { title, connectionId, ...given } = parseInput(
            channelContentSchema,
            mergePatch(before, body),
          );
          const settings = await requireSettings(deps, caller, { ...given, kind: row.kind });
          await requireConnection(deps, caller, settings, connectionId);
          requireMatch(c, versionOf(row));
          const context = { keyring, nowMs: clock() };
          const content = { ...settings, title, connectionId };
          const { plain, secret } = changedSettings(row, secrets, content);
          return db.transaction().execute(async (trx) => {
            const written = await updateChannel(trx, row, content, context);
            const fields = [...plain, ...secret];
            if (written) await recordChannelAudit(trx, caller, "update", written, context.nowMs, fields);
            return written;
          });
        });
        return showChannel(deps, c, caller, updated);
      },
    ),
    defineRoute(
      {
        method: "delete",
        path: "/:channelId",
        operation: "deleteChannel",
        summary: "Delete a channel",
        description:
          "Its address ends within two seconds; quarantine and secrets go. What it has published stays until its retention ends, or goes with it (`purge`).",
        params: channelParams,
        query: purgeQuerySchema,
        answer: deleted,
        reveals: ADDRESS_PERMISSION,
        versioned: true,
        conflict: IS_SYSTEM,
      },
      async ({ caller, params, query, c }) => {
        const options = { purge: query.purge, nowMs: deps.clock() };
        const scope = appScopeOf(caller, params);
        const id = await writeChannel(deps, scope, params.channelId, async (trx, row) => {
          requireMatch(c, versionOf(row));
          await deleteChannel(trx, row, options);
          await recordChannelAudit(trx, caller, "delete", row, options.nowMs);
          return shownName(deps.keyring, caller, row);
        });
        // It is deleted, whatever becomes of this; what it leaves is noted.
        await deps.onDeleted().catch(() => {});
        return { id };
      },
    ),
  ],
};

/**
 * One that falls idle, or whose address the caller comes to see, is answered otherwise, though its row is as it was: its tag tells
 * them apart.
 */
async function showChannel(deps: EntityDeps, c: Context, caller: Caller, row: ChannelRow): Promise<Channel> {
  const channel = await renderOne(deps, caller, row);
  const { stateReason, id } = channel;
  const variant = [stateReason, id === null ? "noAddress" : null].filter((one) => one !== null).join("_");
  showVersion(c, { ...versionOf(row), variant: variant === "" ? null : variant });
  return channel;
}

/** Its address is none of its version's. */
const versionOf = ({ number, version }: ChannelRow): Versioned => ({ id: `channel${number}`, version });

export async function renderOne(deps: EntityDeps, caller: Caller, row: ChannelRow): Promise<Channel> {
  const [channel] = await renderChannels(deps, caller, [row]);
  if (!channel) throw new Error("a channel that is there is not answered");
  return channel;
}

/** @throws ApiError 400 that names each setting that does not fit. */
async function requireSettings(
  deps: SettingsDeps,
  { organizationId }: Caller,
  settings: ChannelSettings,
): Promise<CheckedSettings> {
  const checked = await checkSettings(deps, settings, organizationId);
  if (!checked.ok) throw invalidParameters(checked.error);
  return checked.value;
}

/** @throws ApiError 404 where the organization has no such connection, 400 where it does not fit the channel */
async function requireConnection(
  { db, channelKinds }: ChannelDeps,
  { organizationId }: Caller,
  { kind, config }: CheckedSettings,
  connectionId: string | null,
): Promise<void> {
  if (connectionId === null) return;
  const connection = await findConnection(db, organizationId, connectionId);
  if (!connection) throw notFound("connection");
  const findings = findUnfitConnection({ kind: channelKinds.get(kind), config }, connection);
  if (findings.length > 0) throw invalidParameters(findings);
}
