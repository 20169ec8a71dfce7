import { isSilent } from "../../../channels/pull/silence.ts";
import { findIdleSources } from "../../../data/channels/sources.ts";
import { listTopicsOf } from "../../../data/channels/topics.ts";
import type { ChannelRow } from "../../../data/tables.ts";
import { mapBounded } from "../../../lib/map-bounded.ts";
import type { Deps } from "../../kit/deps.ts";
import { renderCursor, renderSource } from "./render.ts";
import type { SourceEntity } from "./schema.ts";

const CONCURRENCY = 16;

/** Reads the sources of channels that fetch events, in the order of `rows`. @throws UnavailableError */
export async function readSources(deps: Deps, rows: readonly ChannelRow[]): Promise<readonly SourceEntity[]> {
  const { db, states, positions, leases, wakes, clock } = deps;
  const idle = await findIdleSources(
    db,
    rows.map(({ number }) => number),
  );
  return mapBounded(rows, CONCURRENCY, async (row) => {
    const [snapshot, stored, silent, woken] = await Promise.all([
      states.read(row.number),
      positions.read(row.number),
      isSourceSilent(deps, row),
      wakes.readCount(row),
    ]);
    return renderSource(row, snapshot, {
      isOwnerLive: snapshot.owner !== undefined && (await leases.isLive(snapshot.owner)),
      isIdle: idle.has(row.number),
      silent,
      wakes: woken,
      cursor: renderCursor((value) => deps.channelKinds.get(row.kind)?.cursor?.show(value) ?? value, stored),
      nowMs: clock(),
    });
  });
}

async function isSourceSilent(
  deps: Deps,
  { number, config, state, updatedAt }: ChannelRow,
): Promise<boolean> {
  const { expectEverySeconds } = config;
  if (typeof expectEverySeconds !== "number" || state !== "active") return false;
  return isSilent(deps, { expectEverySeconds, updatedAt, topics: await listTopicsOf(deps.db, number) });
}
