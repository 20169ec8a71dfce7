import type { Acknowledger } from "./acknowledge.ts";
import { BatchCollector, type Batching } from "./batch-collector.ts";
import type { Commands } from "./commands.ts";
import type { EntryQueues } from "./entry-queues.ts";
import { FailedEntries } from "./failed-entries.ts";
import { HeldEntries } from "./held-entries.ts";
import type { DeliveredEntry, EntryHandler, InFlight, InFlightEntries } from "./in-flight.ts";
import type { ConsumerSettings } from "./options.ts";

export interface RunnerDeps {
  readonly commands: Pick<Commands, "countAttempt" | "deadLetter" | "loadEntries">;
  readonly settings: ConsumerSettings;
  readonly handler: EntryHandler;
  /** Hands several entries at once to another handler than `handler`. */
  readonly batching?: Batching | undefined;
  readonly acknowledger: Acknowledger;
  readonly onError: (error: unknown) => void;
  /** Returns true if this reader may handle entries of the topic. Set only if events are handled in order. */
  readonly owns?: ((topic: string) => boolean) | undefined;
}

export interface RunnerState {
  readonly inFlight: InFlightEntries;
  readonly queues: EntryQueues;
  /** Number of entries whose fields still fit into memory. */
  readonly loadable: () => number;
  /** Called when an entry or handler has ended. */
  readonly onRoom: () => void;
  readonly drop: (topic: string, entryIds: readonly string[]) => void;
}

/** Runs the handler on queued entries, and acknowledges or retries them afterwards. */
export class EntryRunner {
  readonly #deps: RunnerDeps;
  readonly #state: RunnerState;
  /** Set only if events are handled in order by key. */
  readonly held: HeldEntries | undefined;
  readonly #failures: FailedEntries;
  readonly #batches: BatchCollector | undefined;
  /** Pending retries, dead letter writes and reads of parked entries. */
  readonly #tasks = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  #running = 0;
  #onIdle: () => void = () => {};

  constructor(deps: RunnerDeps, state: RunnerState) {
    const { batching, commands, onError, settings } = deps;
    const { signal } = this.#stopping;
    this.#deps = deps;
    this.#state = state;
    this.#batches = batching && new BatchCollector(batching, state.queues, () => this.dispatch());
    this.#failures = new FailedEntries({ commands, settings, onError, signal });
    if (settings.ordered === "key")
      this.held = new HeldEntries({ ...deps, ...state, maxAtOnce: batching?.maxEvents ?? 1, signal });
  }

  get hasFreeHandler(): boolean {
    return this.#running < this.#deps.settings.concurrency;
  }

  /** Starts no more handlers. Running handlers continue. */
  stop(): void {
    this.#stopping.abort();
    this.#batches?.close();
  }

  /** Resolves when all running handlers, pending retries and acknowledgements have ended. */
  async settled(): Promise<void> {
    if (this.#running > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    await Promise.all([...this.#tasks, this.#deps.acknowledger.settled()]);
  }

  /** Starts as many queued entries as may run now. */
  dispatch(): void {
    const { queues, loadable } = this.#state;
    if (this.#stopping.signal.aborted) return;
    while (this.hasFreeHandler && this.#startNext());
    while (this.held?.isLoading === false && loadable() > 0) {
      const parked = queues.holdParked(this.#mayRun);
      if (parked === undefined) break;
      this.#load(parked, this.held);
    }
  }

  readonly #mayRun = ({ topic }: InFlight): boolean => this.#deps.owns?.(topic) !== false;

  #startNext(): boolean {
    if (this.#batches === undefined) {
      const next = this.#state.queues.take(this.#mayRun);
      if (next !== undefined) this.#start(next);
      return next !== undefined;
    }
    const batch = this.#batches.next(this.#mayRun);
    if (batch !== undefined) this.#startBatch(batch);
    return batch !== undefined;
  }

  /** Reads the fields of a parked entry, and of some entries behind it. Their queue waits meanwhile. */
  #load(parked: InFlight, held: HeldEntries): void {
    const { topic, queue } = parked;
    const { acknowledger, settings } = this.#deps;
    const loading = held.load(parked).then((lost) => {
      for (const entryId of lost) acknowledger.add(topic, entryId);
      if (lost.length > 0) settings.onProblem({ kind: "lost", topic, entryIds: lost });
    });
    this.#track(loading.finally(() => this.#release(queue)));
  }

  #start(inFlight: InFlight): void {
    this.#running++;
    if (inFlight.attempt > this.#deps.settings.maxAttempts) {
      this.#giveUp(inFlight, new Error("every reader that had this entry died before it was handled"));
      this.#leave();
      return;
    }
    let result: Promise<void> | void;
    try {
      result = this.#deps.handler(inFlight);
    } catch (error) {
      // Handle a synchronous throw like a rejection.
      result = Promise.reject(error);
    }
    Promise.resolve(result).then(
      () => {
        this.#handled(inFlight);
        this.#leave();
      },
      (error: unknown) => {
        this.#failed(inFlight, error);
        this.#leave();
      },
    );
  }

  #startBatch(batch: readonly InFlight[]): void {
    const { batching, settings } = this.#deps;
    const { queues } = this.#state;
    const started: InFlight[] = [];
    for (const entries of groupByQueue(batch)) {
      const present = entries.filter(({ isDropped }) => !isDropped);
      if (present.some(this.#mayRun)) {
        started.push(...present);
        continue;
      }
      // The reader has lost the topic while the batch was waiting for more entries.
      queues.putBack(present);
      queues.release(entries[0]?.queue ?? "");
    }
    if (batching === undefined || started.length === 0) return;
    this.#running++;
    const failAll = (error: unknown) => new Map(started.map((entry) => [entry, error] as const));
    const groups = settings.ordered === false ? started.map((entry) => [entry]) : groupByQueue(started);
    void batching
      .handler(started)
      .catch(failAll)
      .then((failures: ReadonlyMap<DeliveredEntry, unknown>) => {
        for (const entries of groups) this.#batchHandled(entries, failures);
        this.#leave();
      });
  }

  /** Acknowledges the entries of a queue up to the first failed one. The entries behind it have failed too. */
  #batchHandled(entries: readonly InFlight[], failures: ReadonlyMap<DeliveredEntry, unknown>): void {
    const { acknowledger } = this.#deps;
    const place = entries.findIndex((entry) => failures.has(entry));
    const end = place < 0 ? entries.length - 1 : place;
    for (const entry of entries.slice(0, end))
      if (this.#state.inFlight.delete(entry)) acknowledger.add(entry.topic, entry.entryId);
    const last = entries[end];
    if (last === undefined) return;
    if (place < 0) this.#handled(last);
    else this.#failed(last, failures.get(last), entries.slice(end + 1));
  }

  #handled(inFlight: InFlight): void {
    const { acknowledger, settings } = this.#deps;
    const { topic, entryId, queue } = inFlight;
    if (!this.#state.inFlight.delete(inFlight)) this.#release(queue);
    else if (settings.ordered === false) acknowledger.add(topic, entryId);
    // Wait for Redis to acknowledge this entry before the next entry of the queue starts.
    else acknowledger.addThen(topic, entryId, () => this.#release(queue));
  }

  /** @param failedWithIt entries behind this one in its queue that were in the same batch */
  #failed(inFlight: InFlight, error: unknown, failedWithIt: readonly InFlight[] = []): void {
    const { onError, settings } = this.#deps;
    const { topic, entryId, attempt, queue } = inFlight;
    if (inFlight.isDropped || this.#stopping.signal.aborted) {
      this.#release(queue);
      return;
    }
    if (attempt >= settings.maxAttempts) {
      this.#state.queues.putBack(failedWithIt);
      this.#giveUp(inFlight, error);
      return;
    }
    settings.onProblem({ kind: "failed", topic, entryId, attempt, error });
    this.held?.parkQueue(inFlight, failedWithIt);
    this.#track(
      this.#retryLater(inFlight, failedWithIt)
        .catch(onError)
        .finally(() => {
          this.held?.noteContinued(queue);
          this.#release(queue);
        }),
    );
  }

  /** Frees the place of a handler that has ended, and starts the next entries. */
  #leave(): void {
    this.#running--;
    this.dispatch();
    this.#state.onRoom();
    if (this.#running === 0) this.#onIdle();
  }

  /** Lets the next entry of an ordered queue start. */
  #release(queue: string): void {
    this.#state.queues.release(queue);
    this.dispatch();
    this.#state.onRoom();
  }

  async #retryLater(inFlight: InFlight, failedWithIt: readonly InFlight[]): Promise<void> {
    const ready: InFlight[] = [];
    for (const entry of [inFlight, ...failedWithIt]) {
      const isFirst = entry === inFlight;
      const state = await (isFirst ? this.#failures.waitForRetry(entry) : this.#failures.countAttempt(entry));
      if (state === "ready" && !entry.isDropped) ready.push(entry);
      if (state === "taken") this.#state.drop(entry.topic, [entry.entryId]);
    }
    this.#state.queues.putBack(ready);
  }

  #giveUp(inFlight: InFlight, error: unknown): void {
    this.#track(this.#deadLetter(inFlight, error).finally(() => this.#release(inFlight.queue)));
  }

  async #deadLetter(inFlight: InFlight, error: unknown): Promise<void> {
    const { topic, entryId, attempt } = inFlight;
    if (!(await this.#failures.deadLetter(inFlight, error))) return;
    this.#state.inFlight.delete(inFlight);
    this.#deps.settings.onProblem({ kind: "dead", topic, entryId, attempt, error });
  }

  #track(task: Promise<void>): void {
    this.#tasks.add(task);
    void task.then(() => this.#tasks.delete(task));
  }
}

/** Returns the entries of each queue, in order. */
function groupByQueue(entries: readonly InFlight[]): readonly (readonly InFlight[])[] {
  const groups = new Map<string, InFlight[]>();
  for (const entry of entries) {
    const group = groups.get(entry.queue);
    if (group === undefined) groups.set(entry.queue, [entry]);
    else group.push(entry);
  }
  return [...groups.values()];
}
