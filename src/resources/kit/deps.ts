import type { RedisBus } from "../../bus/connection/redis.ts";
import type { DeliveryRecords } from "../../bus/deliveries/delivery-records.ts";
import type { Groups } from "../../bus/groups/groups.ts";
import type { GroupProgressReader } from "../../bus/groups/readings.ts";
import type { QuarantineStore } from "../../bus/quarantine/quarantine.ts";
import type { ShardLeases } from "../../bus/sources/shard-leases.ts";
import type { SourcePositions } from "../../bus/sources/source-positions.ts";
import type { SourceStates } from "../../bus/sources/source-states.ts";
import type { Wakes } from "../../bus/sources/wakes.ts";
import type { EntryIndex } from "../../bus/topics/entry-index.ts";
import type { Topics } from "../../bus/topics/topics.ts";
import type { CheckChannelDeps } from "../../channels/check-channel.ts";
import type { EntityDeps } from "../../channels/entity.ts";
import type { ChannelRuntime } from "../../channels/kind.ts";
import type { LimitDefaults } from "../../data/accounts/limits.ts";
import type { RejectionCounts } from "../../data/accounts/rejections.ts";
import type { Keyring } from "../../data/keyring/keyring.ts";
import type { ChannelKindName } from "../../event/channel.ts";
import type { FindRetry, SendAgain } from "../../event/handler.ts";
import type { AccessTokens } from "../../http/callers/access-tokens.ts";
import type { Identify } from "../../http/callers/identify.ts";
import type { CompiledChannel } from "../../ingest/compile-channel.ts";
import type { Explain } from "../../ingest/explain.ts";
import type { ExplainRouting } from "../../ingest/route/explain-routing.ts";
import type { RedriveHeld } from "../../ingest/route/redrive-held.ts";
import type { TestRouting } from "../../ingest/route/test-routing.ts";
import type { PublishTest, Redrive } from "../../ingest/write.ts";
import type { Clock } from "../../lib/clock.ts";
import type { SchemaCompiler } from "../../lib/json-schema/compiled-schema.ts";
import type { Log } from "../../log.ts";
import type { IssuerFetch } from "../../net/connections/issuer.ts";
import type { CredentialsOf } from "../../net/credentials.ts";
import type { Outbound } from "../../net/outbound.ts";
import type { EnforceRowLimit } from "./row-limit.ts";

/** Dependencies of the resources. Each handler takes only those that it uses. */
export interface Deps extends CheckChannelDeps, EntityDeps {
  readonly keyring: Keyring;
  readonly clock: Clock;
  readonly log: Log;
  /** Aborts when the gateway shuts down. */
  readonly stopping: AbortSignal;
  /** Public base URL of the API, such as `https://inlet.example/v1`. */
  readonly baseUrl: string;
  /** Address of a trace in the operator's tracing tool, with the placeholder `{traceId}`. `undefined` if it is not set. */
  readonly traceUrl: string | undefined;
  /** Names of the configured carriers. */
  readonly sipProviders: readonly string[];
  readonly schemas: Pick<SchemaCompiler, "check">;
  /** Called after an app, channel or subscription was deleted from PostgreSQL, to delete its data from Redis. */
  readonly onDeleted: () => Promise<void>;

  readonly requireRoom: EnforceRowLimit;
  readonly limitDefaults: LimitDefaults;
  readonly refusals: Pick<RejectionCounts, "note" | "write">;
  readonly identify: Identify;
  readonly accessTokens: AccessTokens;

  readonly redis: RedisBus;
  readonly groups: Groups;
  readonly entries: EntryIndex;
  readonly topics: Pick<
    Topics,
    "find" | "findEntry" | "deleteEntry" | "deleteDeadLetters" | "lastAppendedMs" | "readActivity"
  >;
  readonly readings: GroupProgressReader;
  readonly quarantine: Pick<QuarantineStore, "list" | "listNewest" | "find" | "delete" | "countByChannel">;
  readonly deliveryRecords: Pick<DeliveryRecords, "list" | "listNewest" | "read" | "find" | "delete">;

  /** Returns the current version of a channel, or `undefined` if the channel was deleted. @throws UnavailableError */
  readonly findCompiledChannel: (channelNumber: number) => Promise<CompiledChannel | undefined>;
  readonly explain: Explain;
  readonly explainRouting: ExplainRouting;
  readonly redrive: Redrive;
  readonly redriveHeld: RedriveHeld;
  readonly publishTest: PublishTest;
  readonly testRouting: TestRouting;
  readonly sendAgain: SendAgain;
  readonly findRetry: FindRetry;

  readonly runtimes: ReadonlyMap<ChannelKindName, Pick<ChannelRuntime, "polled">>;
  readonly positions: SourcePositions;
  readonly states: SourceStates;
  readonly wakes: Pick<Wakes, "readCount">;
  readonly leases: Pick<ShardLeases, "isLive">;
  readonly outbound: Pick<Outbound, "request" | "findBlockedAddress">;
  readonly credentialsOf: CredentialsOf;
  readonly issuerFetch: IssuerFetch;

  /** Sorted names of all permissions, starting with `*`. */
  readonly permissionNames: () => readonly string[];
  /** The OpenAPI document as JSON. */
  readonly openApiText: () => string;
}
