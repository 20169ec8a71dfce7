import { findUnfitConnection } from "../../../channels/connection.ts";
import type { EntityDeps } from "../../../channels/entity.ts";
import { recordAudit } from "../../../data/accounts/audit.ts";
import { type Author, channelName } from "../../../data/accounts/audit-entry.ts";
import { connectChannel } from "../../../data/channels/channel-states.ts";
import type { Trx } from "../../../data/database.ts";
import { conflict, invalidParameters, notFound } from "../../../http/problem.ts";
import type { AppScope } from "../../apps/app-scope.ts";
import type { EventUid } from "./schema.ts";

/**
 * Gives the channel that a subscription names the subscription's connection, if it has none; one that covers all of an app sets
 * none. To a channel that fetches nothing a connection says nothing.
 *
 * @throws ApiError 404 for a connection or channel that is not there, 409 where the channel has another connection, 400 where
 * the connection does not fit it.
 */
export async function connectTarget(
  trx: Trx,
  author: Author,
  { organizationId, appId }: AppScope,
  { eventUid, connectionId }: { readonly eventUid: EventUid; readonly connectionId: string },
  { channelKinds, nowMs }: Pick<EntityDeps, "channelKinds"> & { readonly nowMs: number },
): Promise<void> {
  const connection = await trx
    .selectFrom("connections")
    .select("allowedOrigins")
    .where("id", "=", connectionId)
    .where("organizationId", "=", organizationId)
    .forKeyShare()
    .executeTakeFirst();
  if (!connection) throw notFound("connection");
  if (eventUid.kind === "app") return;
  const channel = await trx
    .selectFrom("channels")
    .selectAll()
    .where("appId", "=", appId)
    .where("uid", "=", eventUid.channelUid)
    .forUpdate()
    .executeTakeFirst();
  if (!channel) throw notFound("channel");
  const kind = channelKinds.get(channel.kind);
  if (kind?.addressed !== false || channel.connectionId === connectionId) return;
  if (channel.connectionId !== null) throw conflict("The channel has another connection.");
  const findings = findUnfitConnection({ kind, config: channel.config }, connection);
  if (findings.length > 0) throw invalidParameters(findings);
  await connectChannel(trx, channel, connectionId, nowMs);
  const entry = {
    action: "update",
    entity: "channel",
    id: channelName(channel),
    fields: ["connectionId"],
  } as const;
  await recordAudit(trx, author, entry, nowMs);
}
