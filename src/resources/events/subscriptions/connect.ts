import { findUnfitConnection } from "../../../channels/connection.ts";
import { recordAudit } from "../../../data/accounts/audit.ts";
import { type Author, channelName } from "../../../data/accounts/audit-entry.ts";
import { connectChannel } from "../../../data/channels/channel-states.ts";
import type { Trx } from "../../../data/database.ts";
import { conflict, invalidParameters, notFound } from "../../../http/errors.ts";
import type { AppScope } from "../../apps/app-scope.ts";
import type { Deps } from "../../kit/deps.ts";
import { keepConnection } from "./handler.ts";
import type { EventUid } from "./schema.ts";

/**
 * Sets the connection on the pull channels that a subscription covers. For a subscription to the whole app, these are the
 * channels that have no connection yet and accept the given one. Push channels are skipped.
 *
 * @returns the uids of the covered channels that now use the connection
 * @throws ApiError 404 when the connection or channel does not exist
 * @throws ApiError 409 when the channel already has another connection
 * @throws ApiError 400 when the connection does not fit the channel, or fits no channel of the app
 */
export async function connectCovered(
  trx: Trx,
  author: Author,
  { organizationId, appId }: AppScope,
  { eventUid, connectionId }: { readonly eventUid: EventUid; readonly connectionId: string },
  { channelKinds, nowMs }: Pick<Deps, "channelKinds"> & { readonly nowMs: number },
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
      if (eventUid.kind !== "app") throw conflict("The channel already has another connection.");
      unfit.push(`${channel.uid}: the channel already has another connection`);
      continue;
    }
    connected.push(channel.uid);
  }
  if (eventUid.kind === "app" && connected.length === 0) {
    const reasons = unfit.length === 0 ? ["it has no channels that fetch events"] : unfit;
    const listed = [...reasons.slice(0, MAX_REASONS), ...(reasons.length > MAX_REASONS ? ["…"] : [])];
    const message = `fits no channel of the app (${listed.join("; ")})`;
    throw invalidParameters([{ path: "connectionId", message }]);
  }
  return connected;
}

const MAX_REASONS = 10;

export const noChannels = () => conflict("The app has no channels to subscribe to. Add a channel first.");
