import { z } from "zod";
import { ADDRESS_PERMISSION, type Channel, channelSchema } from "../../../channels/entity.ts";
import { recordChannelAudit } from "../../../data/accounts/audit.ts";
import type { AuditAction } from "../../../data/accounts/audit-entry.ts";
import { MAX_FORMER_ADDRESSES, rotateAddress } from "../../../data/channels/channel-addresses.ts";
import { openSecrets } from "../../../data/channels/channel-secrets.ts";
import { pauseChannel, resumeChannel } from "../../../data/channels/channel-states.ts";
import type { Trx } from "../../../data/database.ts";
import type { ChannelRow } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict } from "../../../http/errors.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { channelParams } from "../app-channel.ts";
import { appScopeOf, SYSTEM_APP_CONFLICT } from "../app-scope.ts";
import { rotateSchema } from "../rotate-schema.ts";
import { writeChannel } from "./queries.ts";
import { renderOne } from "./routes.ts";

const emptyBody = z.strictObject({});

/** Routes that pause and resume a channel and rotate its address. */
export const channelLife: Resource = {
  tag: "Channels",
  params: channelParams,
  routes: (deps) => {
    const { keyring, clock } = deps;

    const getKind = (row: ChannelRow) => {
      const kind = deps.channelKinds.get(row.kind);
      if (!kind) throw new Error(`unknown channel kind ${row.kind}`);
      return kind;
    };

    /** Locks the channel and applies `change`. Writes an audit entry if `change` returned a changed channel. */
    async function changeState(
      caller: Caller,
      params: { readonly appId: string; readonly channelId: string },
      action: AuditAction,
      change: (trx: Trx, before: ChannelRow) => Promise<ChannelRow>,
    ): Promise<Channel> {
      const write = async (trx: Trx, before: ChannelRow): Promise<ChannelRow> => {
        const after = await change(trx, before);
        if (after.version !== before.version) await recordChannelAudit(trx, caller, action, after, clock());
        return after;
      };
      const row = await writeChannel(deps, appScopeOf(caller, params), params.channelId, write);
      return renderOne(deps, caller, row);
    }

    return [
      defineRoute({
        at: "POST /apps/:appId/channels/:channelId/pause",
        operation: "pauseChannel",
        summary: "Pause a channel",
        description:
          "Takes effect within two seconds. Deliveries to the channel's address are still verified, and stored in quarantine as `paused` for up to seven days. Their senders receive a 200, or a 503 if the quarantine is full. After you resume the channel, the deliveries are processed in order of arrival. A channel that fetches its events stops, and later continues at its cursor. Pausing a paused channel has no effect.",
        body: emptyBody,
        answer: channelSchema,
        reveals: ADDRESS_PERMISSION,
        conflict: SYSTEM_APP_CONFLICT,
        handle: ({ caller, params }) =>
          changeState(caller, params, "pause", (trx, before) =>
            pauseChannel(trx, before, { buffersWhilePaused: getKind(before).addressed, nowMs: clock() }),
          ),
      }),
      defineRoute({
        at: "POST /apps/:appId/channels/:channelId/resume",
        operation: "resumeChannel",
        summary: "Resume a channel",
        description:
          "Resumes a channel that is `paused`, `error` or `needsReauth`. In any other state, the request has no effect. Deliveries that arrived during the pause are processed automatically, in order of arrival and with the current definitions. Until then, new deliveries also receive a 200 and are stored in quarantine as `paused`, or wait briefly if few deliveries are left. Deliveries therefore stay in order.",
        body: emptyBody,
        answer: channelSchema,
        reveals: ADDRESS_PERMISSION,
        conflict: SYSTEM_APP_CONFLICT,
        handle: ({ caller, params }) =>
          changeState(caller, params, "resume", (trx, before) => {
            const config = { ...before.config, ...openSecrets(keyring, before) };
            const state = getKind(before).needsSetup(config, deps.presets) ? "needsSetup" : "active";
            return resumeChannel(trx, before, { state, nowMs: clock() });
          }),
      }),
      defineRoute({
        at: "POST /apps/:appId/channels/:channelId/rotate",
        operation: "rotateChannel",
        summary: "Give a channel a new address",
        description:
          "Returns the channel with its new id. Its uid, topics, quarantine and remembered event ids do not change. All former addresses accept deliveries for at most `graceSeconds` from now, then respond with 404. In this API, former ids become invalid at once.",
        body: rotateSchema,
        answer: channelSchema,
        reveals: ADDRESS_PERMISSION,
        conflict: `${MAX_FORMER_ADDRESSES} former addresses are still valid and \`graceSeconds\` is not 0; or ${SYSTEM_APP_CONFLICT}`,
        handle: ({ caller, params, body }) =>
          changeState(caller, params, "rotate", async (trx, before) => {
            const rotation = { graceSeconds: body.graceSeconds, nowMs: clock() };
            const rotated = await rotateAddress(trx, keyring, before, rotation);
            if (rotated) return rotated;
            throw conflict(
              `The channel already has ${MAX_FORMER_ADDRESSES} valid former addresses. Set graceSeconds to 0 to invalidate them.`,
            );
          }),
      }),
    ];
  },
};
