import { listSources, readSourceConfigs, type SourceRow } from "../../data/channels/sources.ts";
import type { Queryable } from "../../data/database.ts";
import type { ChannelIdentity, ChannelKindName } from "../../event/channel.ts";
import { readStoredConfig } from "../../lib/stored-config.ts";
import type { ChannelKind, ChannelRuntime } from "../kind.ts";

export interface DesiredSource {
  readonly identity: ChannelIdentity;
  /** Version of the channel. Every change to the channel increments it. */
  readonly version: number;
  /** Settings of the channel with defaults, but without secrets. */
  readonly config: unknown;
}

export interface SourceListDeps {
  readonly db: Queryable;
  readonly channelKinds: ReadonlyMap<ChannelKindName, Pick<ChannelKind, "configSchema">>;
  readonly runtimes: ReadonlyMap<ChannelKindName, Pick<ChannelRuntime, "stream" | "polled">>;
}

export interface SourceSnapshot {
  /** All channels that fetch events, including inactive channels. */
  readonly all: readonly SourceRow[];
  /** Sources with a long-lived connection that must run, by internal channel id. */
  readonly streams: ReadonlyMap<number, SourceRow>;
  /** Sources to poll. An unchanged source is the same object as in the previous list. */
  readonly polled: readonly DesiredSource[];
}

/** Creates a function that reads the list of sources. The function throws `UnavailableError` if the database is unavailable. */
export function createSourceList(deps: SourceListDeps): () => Promise<SourceSnapshot> {
  const { db, channelKinds, runtimes } = deps;
  const kinds = [...runtimes].flatMap(([kind, { stream, polled }]) => (stream || polled ? [kind] : []));
  let known = new Map<number, DesiredSource>();

  function desiredSource(row: SourceRow, config: Readonly<Record<string, unknown>>): DesiredSource {
    const { number, uid, kind, appId, organizationId, version } = row;
    // Strict parsing could fail, because these settings lack their secrets. Defaults are already included in the stored settings.
    const own = channelKinds.get(kind);
    const read = own && readStoredConfig(own.configSchema, config);
    return {
      identity: { number, uid, kind, appId, organizationId },
      version,
      config: read?.ok ? read.value.config : config,
    };
  }

  async function withConfigs(rows: readonly SourceRow[]): Promise<readonly DesiredSource[]> {
    const changed = rows.filter(({ number, version }) => known.get(number)?.version !== version);
    const configs = await readSourceConfigs(
      db,
      changed.map(({ number }) => number),
    );
    const next = new Map<number, DesiredSource>();
    for (const row of rows) {
      const before = known.get(row.number);
      const config = configs.get(row.number);
      if (before?.version === row.version) next.set(row.number, before);
      // A missing config means that the channel was deleted after it was listed.
      else if (config !== undefined) next.set(row.number, desiredSource(row, config));
    }
    known = next;
    return [...next.values()];
  }

  return async () => {
    const all = await listSources(db, kinds);
    const wanted = all.filter(({ isWanted }) => isWanted);
    const streams = wanted.filter(({ kind }) => runtimes.get(kind)?.stream !== undefined);
    const polled = wanted.filter(({ kind }) => runtimes.get(kind)?.polled !== undefined);
    return {
      all,
      streams: new Map(streams.map((row) => [row.number, row])),
      polled: await withConfigs(polled),
    };
  };
}
