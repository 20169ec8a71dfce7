import { findUnfitConnection } from "../../../channels/connection.ts";
import type { EntityDeps } from "../../../channels/entity.ts";
import { recordAudit } from "../../../data/accounts/audit.ts";
import { type Author, channelName } from "../../../data/accounts/audit-entry.ts";
import { connectChannel } from "../../../data/channels/channel-states.ts";
import type { Trx } from "../../../data/database.ts";
import { conflict, invalidParameters, notFound } from "../../../http/problem.ts";
import type { AppScope } from "../../apps/app-scope.ts";
import { keepConnection } from "./handler.ts";
import type { EventUid } from "./schema.ts";

/**
 * Gives the connection to what a subscription covers of those channels that fetch: to the one that it names, or, where it covers
 * all of an app, to each that has none and may have this one. To a channel that fetches nothing a connection says nothing.
 * Answers the uids of the channels that carry it then.
 *
 * @throws ApiError 404 for a connection or channel that is not there, 409 where the channel has another connection, 400 where
 * the connection does not fit it, or none of an app's.
 */
export async function connectCovered(
  trx: Trx,
  author: Author,
  { organizationId, appId }: AppScope,
  { eventUid, connectionId }: { readonly eventUid: EventUid; readonly connectionId: string },
  { channelKinds, nowMs }: Pick<EntityDeps, "channelKinds"> & { readonly nowMs: number },
): Promise<readonly string[]> {
  const connection = await keepConnection(trx, organizationId, connectionId);
  let covered = trx.selectFrom("channels").selectAll().where("appId", "=", appId);
  if (eventUid.kind !== "app") covered = covered.where("uid", "=", eventUid.channelUid);
  const channels = await covered.orderBy("number").forUpdate().execute();
  if (channels.length === 0) {
    throw eventUid.kind === "app" ? noChannels() : notFound("channel");
  }

  const connected: string[] = [];
  const unfit: string[] = [];
  for (const channel of channels) {
    const kind = channelKinds.get(channel.kind);
    if (kind?.addressed !== false) continue;
    if (channel.connectionId === null) {
      const findings = findUnfitConnection({ kind, config: channel.config }, connection);
      if (findings.length > 0) {
        if (eventUid.kind !== "app") throw invalidParameters(findings);
        unfit.push(...findings.map(({ message }) => `${channel.uid}: ${message}`));
        continue;
      }
      await connectChannel(trx, channel, connectionId, nowMs);
      const id = channelName(channel);
      const entry = { action: "update", entity: "channel", id, fields: ["connectionId"] } as const;
      await recordAudit(trx, author, entry, nowMs);
    } else if (channel.connectionId !== connectionId) {
      if (eventUid.kind !== "app") throw conflict("The channel has another connection.");
      unfit.push(`${channel.uid}: the channel has another connection`);
      continue;
    }
    connected.push(channel.uid);
  }
  if (eventUid.kind === "app" && connected.length === 0) {
    const reasons = unfit.length === 0 ? ["it has none that fetches"] : unfit;
    const told = [...reasons.slice(0, MOST_TOLD), ...(reasons.length > MOST_TOLD ? ["…"] : [])];
    const message = `no channel of the app can carry it (${told.join("; ")})`;
    throw invalidParameters([{ path: "connectionId", message }]);
  }
  return connected;
}

const MOST_TOLD = 10;

export const noChannels = () => conflict("The app has no channels to subscribe to.");
