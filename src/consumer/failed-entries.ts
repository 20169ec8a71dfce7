import { backoffMs } from "../lib/backoff.ts";
import { sleep } from "../lib/sleep.ts";
import type { Commands } from "./commands.ts";
import type { InFlight } from "./in-flight.ts";
import { retry } from "./loop.ts";
import type { ConsumerSettings } from "./options.ts";
import { messageOf } from "./problems.ts";

export interface FailedEntriesDeps {
  readonly commands: Pick<Commands, "countAttempt" | "deadLetter">;
  readonly settings: Pick<ConsumerSettings, "maxAttempts" | "retry">;
  readonly onError: (error: unknown) => void;
  /** Aborts when the reader stops. */
  readonly signal: AbortSignal;
}

/** Decides how entries whose handler has failed continue: with another attempt, or as dead letters. */
export class FailedEntries {
  readonly #deps: FailedEntriesDeps;

  constructor(deps: FailedEntriesDeps) {
    this.#deps = deps;
  }

  /**
   * Waits until an entry may be handled again, and counts the next attempt. Returns `"taken"` if another reader has claimed the entry, and
   * `undefined` if the reader stops or has dropped the entry.
   */
  async waitForRetry(inFlight: InFlight): Promise<"ready" | "taken" | undefined> {
    const { settings } = this.#deps;
    const signal = AbortSignal.any([inFlight.signal, this.#deps.signal]);
    await sleep(backoffMs(settings.retry, inFlight.attempt, Math.random), signal);
    return signal.aborted ? undefined : this.countAttempt(inFlight, signal);
  }

  /** Counts the next attempt at an entry. Returns the same values as `waitForRetry`. */
  async countAttempt(inFlight: InFlight, signal = this.#deps.signal): Promise<"ready" | "taken" | undefined> {
    const { commands, settings, onError } = this.#deps;
    const waitMs = (): number => backoffMs(settings.retry, inFlight.attempt, Math.random);
    let isOurs = false;
    const count = async (): Promise<void> => {
      isOurs = await commands.countAttempt(inFlight, inFlight.attempt + 1);
    };
    if (!(await retry(count, { signal, onError, backoffMs: waitMs }))) return undefined;
    if (!isOurs) return "taken";
    inFlight.attempt++;
    return "ready";
  }

  /** Stores an entry as a dead letter. Returns false if the reader stops first. */
  deadLetter({ topic, entryId, fields, attempt }: InFlight, error: unknown): Promise<boolean> {
    const { commands, settings, onError, signal } = this.#deps;
    const letter = { topic, entryId, fields, attempt: Math.min(attempt, settings.maxAttempts) };
    return retry(() => commands.deadLetter(letter, messageOf(error)), {
      signal,
      onError,
      backoffMs: (failures) => backoffMs(settings.retry, failures, Math.random),
    });
  }
}
