import type { ChannelIdentity } from "../event/channel.ts";
import type { ChannelRow } from "./tables.ts";

/** What of a channel's row names it for good. */
export function identityOf(row: ChannelRow): ChannelIdentity {
  const { number, uid, kind, appId, organizationId } = row;
  return { number, uid, kind, appId, organizationId };
}
