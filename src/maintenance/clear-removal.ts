import type { RedisBus } from "../bus/connection/redis.ts";
import type { DeliveryRecords } from "../bus/deliveries/delivery-records.ts";
import type { Groups } from "../bus/groups/groups.ts";
import { removeSubscription } from "../bus/groups/subscription-groups.ts";
import { cursorKey, signedBytesNotesKey, sourcePollsKey, sourceStateKey, wakesKey } from "../bus/keys.ts";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { Topics } from "../bus/topics/topics.ts";
import type { Removal } from "../data/removals.ts";
import { AGENT_ROW } from "../data/subscriptions/agent-subscriptions.ts";
import { isId } from "../lib/ids.ts";
import { mapBounded } from "../lib/map-bounded.ts";

export interface ClearRemovalDeps {
  readonly redis: RedisBus;
  readonly groups: Groups;
  readonly topics: Topics;
  readonly quarantine: Pick<QuarantineStore, "purge">;
  readonly deliveryRecords: Pick<DeliveryRecords, "purge">;
}

const CONCURRENCY = 16;

/**
 * Deletes the Redis data of a deleted channel or subscription. Repeating the deletion is safe.
 *
 * @throws UnavailableError
 */
export async function clearRemoval(deps: ClearRemovalDeps, removal: Removal): Promise<void> {
  const { redis, topics, quarantine, deliveryRecords } = deps;
  switch (removal.kind) {
    case "subscription":
      return removeSubscription(deps, removal.id);
    case "channel": {
      const { channel } = removal;
      await mapBounded(removal.topics, CONCURRENCY, (topic) =>
        removal.purge ? topics.delete(topic) : removeGroups(deps.groups, topic),
      );
      await redis.call("del", [
        cursorKey(channel.number),
        sourceStateKey(channel.number),
        sourcePollsKey(channel.number),
      ]);
      await redis.call("del", [signedBytesNotesKey(channel.number)]);
      await redis.call("del", [wakesKey(channel)]);
      await quarantine.purge(channel.organizationId, channel.number);
      await deliveryRecords.purge(channel.organizationId, channel.number);
      return;
    }
    default:
      removal satisfies never;
  }
}

/** Removes the consumer groups of subscriptions from a topic. Keeps groups that other Redis clients created. */
async function removeGroups(groups: Groups, topic: string): Promise<void> {
  for (const { name } of await groups.list(topic)) {
    if (isId("sub", name) || isId(AGENT_ROW, name)) await groups.remove(topic, name);
  }
}
