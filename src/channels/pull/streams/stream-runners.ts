import { computeShard } from "../../../bus/sources/shard-leases.ts";
import type { SourceRow } from "../../../data/channels/sources.ts";
import type { StreamRunner, StreamState } from "./stream-runner.ts";

interface Running {
  readonly runner: StreamRunner;
  version: number;
}

/** The streams that run on this worker. @param start begins to hold a stream */
export function createStreamRunners(start: (row: SourceRow) => StreamRunner) {
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
    /** Starts what should run and does not, stops what should not, and begins anew what has changed. */
    reconcile(next: ReadonlyMap<number, SourceRow>): void {
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
    restart: (channelNumber: number): void => running.get(channelNumber)?.runner.restart(),
    /** Undefined where it does not run here. */
    state: (channelNumber: number): StreamState | undefined => running.get(channelNumber)?.runner.state,
    /** Resolves when nothing that was stopped in these shards runs any more. */
    async ended(shards: ReadonlySet<number>): Promise<void> {
      await Promise.all(
        [...ending].flatMap(([number, ended]) => (shards.has(computeShard(number)) ? [ended] : [])),
      );
    },
  };
}
