import { z } from "zod";
import { ADDRESS_PERMISSION, type Channel, channelSchema } from "../../../channels/entity.ts";
import { recordChannelAudit } from "../../../data/accounts/audit.ts";
import type { AuditAction } from "../../../data/accounts/audit-entry.ts";
import { MAX_FORMER_ADDRESSES, rotateAddress } from "../../../data/channels/channel-addresses.ts";
import { openSettings } from "../../../data/channels/channel-secrets.ts";
import { pauseChannel, resumeChannel } from "../../../data/channels/channel-states.ts";
import type { Trx } from "../../../data/database.ts";
import type { ChannelRow } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict } from "../../../http/problem.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { channelParams as params } from "../app-channel.ts";
import { appScopeOf, IS_SYSTEM } from "../app-scope.ts";
import { writeChannel } from "./queries.ts";
import { type ChannelDeps, renderOne } from "./routes.ts";

const DAY_SECONDS = 86_400;

const rotateSchema = z.strictObject({
  graceSeconds: z
    .int()
    .min(0)
    .max(30 * DAY_SECONDS)
    .default(DAY_SECONDS)
    .describe("how long any address of before goes on at most; 0 ends them all at once"),
});

const nothing = z.strictObject({});

/** Pause, resume and rotation of a channel. */
export const channelLife: Resource<ChannelDeps> = {
  path: "/apps/:appId/channels",
  tag: "Channels",
  routes: (deps) => {
    const { keyring, clock } = deps;

    const kindOf = (row: ChannelRow) => {
      const kind = deps.channelKinds.get(row.kind);
      if (!kind) throw new Error(`there is no channel kind ${row.kind}`);
      return kind;
    };

    /** Does it under the channel's lock, and notes who did, unless it changed nothing. */
    async function act(
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
      defineRoute(
        {
          method: "post",
          path: "/:channelId/pause",
          operation: "pauseChannel",
          summary: "Pause a channel",
          description:
            "In force everywhere within two seconds. Deliveries to its address are verified still, kept in quarantine, each whole, as `paused` (200; 503 when the quarantine is full) and run again in order of arrival once the channel is resumed, as long as quarantine keeps them (seven days). A channel that fetches stops, and goes on from there. Pausing a paused channel changes nothing.",
          params,
          body: nothing,
          answer: channelSchema,
          reveals: ADDRESS_PERMISSION,
          conflict: IS_SYSTEM,
        },
        ({ caller, params }) =>
          act(caller, params, "pause", (trx, before) =>
            pauseChannel(trx, before, { buffersWhilePaused: kindOf(before).addressed, nowMs: clock() }),
          ),
      ),
      defineRoute(
        {
          method: "post",
          path: "/:channelId/resume",
          operation: "resumeChannel",
          summary: "Resume a stopped channel",
          description:
            "One that was paused, or that `error` or `needsReauth` has stopped. What was kept is run through today's definitions in order of arrival, without being asked for. Until all of it is through, new deliveries are kept behind it (200, in `quarantine` as `paused`) or, when little is left, answered a moment later, so that none overtakes another; from then on they pass as usual. Resuming a channel in any other state changes nothing.",
          params,
          body: nothing,
          answer: channelSchema,
          reveals: ADDRESS_PERMISSION,
          conflict: IS_SYSTEM,
        },
        ({ caller, params }) =>
          act(caller, params, "resume", (trx, before) => {
            const settings = { ...before.config, ...openSettings(keyring, before) };
            const state = kindOf(before).needsSetup(settings, deps.presets) ? "needsSetup" : "active";
            return resumeChannel(trx, before, { state, nowMs: clock() });
          }),
      ),
      defineRoute(
        {
          method: "post",
          path: "/:channelId/rotate",
          operation: "rotateChannel",
          summary: "Give a channel a new address",
          description:
            "Answers the channel under its new id; its uid, topics, quarantine and remembered ids stay. Deliveries to the address of before, and to those before it, are taken for `graceSeconds` from now at most, then answered 404; in this API only the new id names the channel, at once.",
          params,
          body: rotateSchema,
          answer: channelSchema,
          reveals: ADDRESS_PERMISSION,
          conflict: `${MAX_FORMER_ADDRESSES} addresses of before still go on, and the grace is not 0; or ${IS_SYSTEM}`,
        },
        ({ caller, params, body }) =>
          act(caller, params, "rotate", async (trx, before) => {
            const rotation = { graceSeconds: body.graceSeconds, nowMs: clock() };
            const rotated = await rotateAddress(trx, keyring, before, rotation);
            if (rotated) return rotated;
            throw conflict(`The channel has ${MAX_FORMER_ADDRESSES} addresses of before that still go on.`);
          }),
      ),
    ];
  },
};
