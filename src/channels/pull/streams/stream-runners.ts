import { shardOf } from "../../../bus/sources/shard-leases.ts";
import type { SourceRow } from "../../../data/channels/sources.ts";
import type { StreamRunner, StreamState } from "./stream-runner.ts";

/** The streams that run on this worker. */
export interface StreamRunners {
  /** Starts what should run and does not, stops what should not, and begins anew what has changed. */
  readonly reconcile: (wanted: ReadonlyMap<number, SourceRow>) => void;
  readonly restart: (channelNumber: number) => void;
  /** Undefined where it does not run here. */
  readonly state: (channelNumber: number) => StreamState | undefined;
  /** Resolves when nothing that was stopped in these shards runs any more. */
  readonly ended: (shards: ReadonlySet<number>) => Promise<void>;
}

interface Running {
  readonly runner: StreamRunner;
  version: number;
}

/** @param start begins to hold a stream */
export function createStreamRunners(start: (row: SourceRow) => StreamRunner): StreamRunners {
  const running = new Map<number, Running>();
  /** One that is being stopped is begun again only once it has ended: two of one source would fence each other. */
  const ending = new Map<number, Promise<void>>();
  let wanted: ReadonlyMap<number, SourceRow> = new Map();

  function begin(row: SourceRow): void {
    running.set(row.number, { runner: start(row), version: row.version });
  }

  function stop(number: number, { runner }: Running): void {
    running.delete(number);
    const ended = runner.stop().then(() => {
      ending.delete(number);
      const row = wanted.get(number);
      if (row) begin(row);
    });
    ending.set(number, ended);
  }

  return {
    reconcile(next) {
      wanted = next;
      for (const [number, one] of running) if (!next.has(number)) stop(number, one);
      for (const row of next.values()) {
        const one = running.get(row.number);
        if (one === undefined) {
          if (!ending.has(row.number)) begin(row);
        } else if (one.version !== row.version) {
          one.version = row.version;
          one.runner.restart();
        }
      }
    },
    restart: (channelNumber) => running.get(channelNumber)?.runner.restart(),
    state: (channelNumber) => running.get(channelNumber)?.runner.state(),
    async ended(shards) {
      await Promise.all(
        [...ending].flatMap(([number, ended]) => (shards.has(shardOf(number)) ? [ended] : [])),
      );
    },
  };
}
