import { listSources, readSourceConfigs, type SourceRow } from "../../data/channels/sources.ts";
import type { Queryable } from "../../data/database.ts";
import type { ChannelIdentity, ChannelKindName } from "../../event/channel.ts";
import type { ChannelKind, ChannelRuntime } from "../kind.ts";
import { readStoredSettings } from "../stored-settings.ts";

/** A pull source that should run, as far as what keeps it going must know. */
export interface DesiredSource {
  readonly identity: ChannelIdentity;
  /** Changes with every write to the channel. */
  readonly version: number;
  /** The channel's `config` without its secret settings, defaults filled in by the kind's schema. */
  readonly settings: unknown;
}

export interface SourceListDeps {
  readonly db: Queryable;
  readonly channelKinds: ReadonlyMap<ChannelKindName, Pick<ChannelKind, "settings">>;
  readonly runtimes: ReadonlyMap<ChannelKindName, Pick<ChannelRuntime, "stream" | "polled">>;
}

/** The sources that a look has found. */
export interface SourceSnapshot {
  /** Every channel of a kind that fetches. */
  readonly all: readonly SourceRow[];
  /** Those that should run and are kept open. */
  readonly streams: ReadonlyMap<number, SourceRow>;
  /** Those that should run and are asked now and then; the same objects as in the look before, where they are as they were. */
  readonly polled: readonly DesiredSource[];
}

/** Looks for the sources that should run. @throws UnavailableError */
export function createSourceList(deps: SourceListDeps): () => Promise<SourceSnapshot> {
  const { db, channelKinds, runtimes } = deps;
  const kinds = [...runtimes].flatMap(([kind, { stream, polled }]) => (stream || polled ? [kind] : []));
  let known = new Map<number, DesiredSource>();

  function desiredSource(row: SourceRow, config: Readonly<Record<string, unknown>>): DesiredSource {
    const { number, uid, kind, appId, organizationId, version } = row;
    // A secret that it needs may be missing here: what was stored had its defaults when it was written.
    const own = channelKinds.get(kind);
    const read = own && readStoredSettings(own.settings, config);
    return {
      identity: { number, uid, kind, appId, organizationId },
      version,
      settings: read?.ok ? read.value.settings : config,
    };
  }

  async function withSettings(rows: readonly SourceRow[]): Promise<readonly DesiredSource[]> {
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
      // Deleted since it was listed: the next look does not find it.
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
      polled: await withSettings(polled),
    };
  };
}
