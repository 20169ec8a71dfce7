import type { ChannelKindName } from "../event/channel.ts";
import { readWakes } from "../event/wakes.ts";
import type { Finding } from "../lib/errors.ts";
import { suggestNearest } from "../lib/nearest.ts";
import type { ChannelKinds } from "./kind.ts";

/** A channel that `wakes` can name, if it polls. */
export interface NamedChannel {
  readonly uid: string;
  readonly kind: ChannelKindName;
}

/**
 * Returns an error for each uid in `wakes` that is not a polling channel of the app.
 *
 * @param channels channels of the same app
 * @param stored earlier config of the channel. Its uids are accepted, because their channels may have been deleted since.
 */
export function findWrongWakes(
  channelKinds: ChannelKinds,
  config: object,
  channels: readonly NamedChannel[],
  stored: object = {},
): readonly Finding[] {
  const accepted = readWakes(stored) ?? [];
  const isPolled = ({ kind }: NamedChannel): boolean => channelKinds.get(kind)?.isPolled === true;
  const polled = channels.filter(isPolled).map(({ uid }) => uid);
  return (readWakes(config) ?? []).flatMap((uid, index): readonly Finding[] => {
    if (polled.includes(uid) || accepted.includes(uid)) return [];
    const other = channels.find((channel) => channel.uid === uid);
    const problem = other ? `${uid} is a ${other.kind} channel` : `there is no channel ${uid}`;
    const message = `must be the uid of a polling channel of the same app, but ${problem}${suggestNearest(uid, polled)}`;
    return [{ path: `config.wakes[${index}]`, message }];
  });
}
