import { LRUCache } from "lru-cache";
import type { RouteTarget, RouteTargets } from "../../data/intakes/route-targets.ts";
import { upToEntries } from "../../lib/up-to-entries.ts";
import type { CompiledChannel } from "../compile-channel.ts";
import type { RulesCache } from "../rules-cache.ts";

export interface FoundInstall {
  readonly channel: CompiledChannel;
  /** Whether the intake may hold items of the key that must be published first. */
  readonly isHeld: boolean;
}

export type FindInstall = ReturnType<typeof createFindInstall>["find"];

/** Maximum number of route keys in the cache of one intake. */
const MAX_KEYS = 20_000;
/** Time in ms for which a key without an install is not looked up again. An install must get its items within two seconds. */
const ABSENT_MS = 1_000;
const ABSENT = Symbol("absent");

/**
 * Creates functions that find the channel of the install that owns a route key. Each change of an intake or of its route keys creates a new
 * object for the intake, so the keys are cached for that object. The channels themselves are in the cache of all channels.
 */
export function createFindInstall({
  targets,
  findChannel,
}: {
  readonly targets: Pick<RouteTargets, "find">;
  readonly findChannel: RulesCache["find"];
}) {
  const caches = new WeakMap<CompiledChannel, LRUCache<string, RouteTarget | typeof ABSENT>>();

  function cacheOf(intake: CompiledChannel) {
    const known =
      caches.get(intake) ?? new LRUCache<string, RouteTarget | typeof ABSENT>(upToEntries(MAX_KEYS));
    caches.set(intake, known);
    return known;
  }

  async function lookUp(intake: CompiledChannel, key: string): Promise<RouteTarget | undefined> {
    const { identity, routes } = intake;
    const channelUid = routes?.channelUid ?? "";
    const target = await targets.find({ blueprintId: identity.appId, channelUid, key });
    cacheOf(intake).set(key, target ?? ABSENT, target ? {} : { ttl: ABSENT_MS });
    return target;
  }

  async function open({ address, isHeld }: RouteTarget): Promise<FoundInstall | undefined> {
    const channel = await findChannel(address);
    return channel && { channel, isHeld };
  }

  return {
    /**
     * Returns `undefined` if no install owns the key.
     *
     * @throws UnavailableError
     */
    async find(intake: CompiledChannel, key: string): Promise<FoundInstall | undefined> {
      const known = cacheOf(intake).get(key);
      if (known === ABSENT) return undefined;
      const found = known && (await open(known));
      if (found !== undefined) return found;
      // The channel may have a new address, or its app was deleted.
      const target = await lookUp(intake, key);
      return target && open(target);
    },
    /** Makes the next `find` look up whether the key is held. The change feed takes up to a second to report it. */
    forgetUnheld(intake: CompiledChannel, key: string): void {
      const keys = cacheOf(intake);
      const known = keys.get(key);
      if (known !== undefined && known !== ABSENT && !known.isHeld) keys.delete(key);
    },
  };
}
