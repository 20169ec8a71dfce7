import type { RedisBus } from "../bus/connection/redis.ts";
import type { RedisClock } from "../bus/connection/redis-clock.ts";
import type { ChannelKinds } from "../channels/kind.ts";
import type { Config } from "../config/schema.ts";
import type { ChangeFeed } from "../data/changes.ts";
import type { Database } from "../data/database.ts";
import type { Keyring } from "../data/keyring/keyring.ts";
import type { Clock } from "../lib/clock.ts";
import type { SchemaCompiler } from "../lib/json-schema/compiled-schema.ts";
import type { Budgets } from "../limits/budgets.ts";
import type { Rates } from "../limits/shared-rates.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { Outbound } from "../net/outbound.ts";
import type { Tracing } from "../tracing/tracing.ts";
import type { Presets } from "../verify/presets.ts";

/** The connections, caches and settings that nearly all parts of a gateway use. */
export interface Foundation {
  readonly db: Database["db"];
  readonly changes: ChangeFeed;
  readonly keyring: Keyring;
  readonly redis: RedisBus;
  readonly outbound: Outbound;
  readonly channelKinds: ChannelKinds;
  readonly presets: Presets;
  readonly schemas: SchemaCompiler;
  readonly config: Config;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** Clock of the Redis server. All workers use it, so that they agree when a job is due. */
  readonly redisClock: Pick<RedisClock, "now" | "aheadMs">;
  readonly log: Log;
  /** `undefined` if the gateway exports no traces. */
  readonly tracing: Tracing | undefined;
  /** Rates and budgets that all processes of this machine share. */
  readonly rates: Rates;
  readonly budgets: Budgets;
}
