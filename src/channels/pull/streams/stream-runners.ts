import { computeShard } from "../../../bus/sources/shard-leases.ts";
import type { SourceRow } from "../../../data/channels/sources.ts";
import type { StreamRunner, StreamState } from "./stream-runner.ts";

interface Running {
  readonly runner: StreamRunner;
  version: number;
}

export function createStreamRunners(start: (row: SourceRow) => StreamRunner) {
  const running = new Map<number, Running>();
  /**
   * Streams that are stopping, by internal channel id. A stream must end before it restarts, because two runs of one source would fence
   * each other.
   */
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
    /** Returns the state of a stream, or `undefined` if the stream does not run on this worker. */
    state: (channelNumber: number): StreamState | undefined => running.get(channelNumber)?.runner.state,
    /** Waits until all stopping streams in these shards have ended. */
    async ended(shards: ReadonlySet<number>): Promise<void> {
      await Promise.all(
        [...ending].flatMap(([number, ended]) => (shards.has(computeShard(number)) ? [ended] : [])),
      );
    },
  };
}
