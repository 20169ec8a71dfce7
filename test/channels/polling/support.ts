import type { z } from "zod";
import { pollingConfigSchema } from "../../../src/channels/polling/config/config.ts";
import type { PollDeps } from "../../../src/channels/polling/poll-source.ts";
import { createPolledSource, polling } from "../../../src/channels/polling/polling.ts";
import { pollingProfile } from "../../../src/channels/polling/profile.ts";
import type { FetchedDelivery, SourceEnd, SourceRun } from "../../../src/channels/source.ts";
import type { Definition } from "../../../src/event/definition.ts";
import type { IngestResult } from "../../../src/event/ingest.ts";
import { UnavailableError } from "../../../src/lib/errors.ts";
import { createOutbound } from "../../../src/net/create-outbound.ts";
import type { Credentials } from "../../../src/net/credentials.ts";
import { normalize } from "../../../src/normalize/normalize.ts";
import { compileRules } from "../../../src/normalize/rule-set.ts";
import { readHere } from "../../support/read-here.ts";

type Input = z.input<typeof pollingConfigSchema>;

/** Settings of a channel without a preset. */
export type Config = Input & {
  readonly request: NonNullable<Input["request"]>;
  readonly discriminator: NonNullable<Input["discriminator"]>;
};

export interface Published {
  readonly id: string;
  readonly identity: string;
  readonly data: string;
}

/** The failure of a write. `refused` stores no data and throws; `died` stores the data and throws. */
export type Crash = "refused" | "died" | undefined;

const channel = { number: 1, uid: "poll", kind: "polling", appId: "app_1", organizationId: "org_1" } as const;

export const outbound = createOutbound({ allowNetworks: ["127.0.0.0/8"] });

export interface RigOptions {
  readonly config: Config;
  readonly clock?: () => number;
  readonly credentials?: Credentials;
  readonly definition?: Partial<Definition>;
  /** Definitions in place of `definition`. */
  readonly definitions?: readonly Definition[];
  readonly wait?: PollDeps["wait"];
  readonly readInWorker?: PollDeps["readInWorker"];
  /** Whether all polls are run by the same worker, which remembers facts about the server. */
  readonly keepsWorker?: true;
}

/**
 * A polling channel with the real rules. Its cursor moves together with the published events. `log` holds the published events before any
 * deduplication.
 */
export class PollRig {
  readonly log: Published[] = [];
  readonly deliveries: FetchedDelivery[] = [];
  readonly warnings: string[] = [];
  readonly waits: number[] = [];
  crashes: Crash[] = [];
  cursor: string | undefined;
  startedAtMs: number;
  failures = 0;
  readonly config: unknown;
  readonly #options: RigOptions;
  #source: ReturnType<typeof createPolledSource> | undefined;
  readonly #clock: () => number;
  readonly #rules: ReturnType<typeof rulesOf>;

  constructor(options: RigOptions) {
    this.#options = options;
    this.#clock = options.clock ?? Date.now;
    this.startedAtMs = this.#clock();
    this.config = pollingConfigSchema.parse(options.config);
    this.#rules = rulesOf(this.config, options.definitions ?? [{ type: "row", ...options.definition }]);
  }

  get source() {
    const source = this.#source ?? this.#createSource();
    if (this.#options.keepsWorker) this.#source = source;
    return source;
  }

  #createSource() {
    return createPolledSource({
      outbound,
      clock: this.#clock,
      random: () => 0,
      readInWorker: this.#options.readInWorker ?? readHere(polling),
      wait:
        this.#options.wait ??
        (async (ms) => {
          this.waits.push(ms);
        }),
    });
  }

  /** Runs one poll. Returns `undefined` if a crash ended it. */
  async poll(signal: AbortSignal = new AbortController().signal): Promise<SourceEnd | undefined> {
    try {
      return await this.source.poll(this.run(signal));
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      return undefined;
    }
  }

  /** Polls until no more items are available at once. */
  async pollAll(maxPolls = 50): Promise<SourceEnd | undefined> {
    for (let polls = 1; ; polls++) {
      const end = await this.poll();
      const hasMore =
        end?.kind === "done" && end.notBeforeMs !== undefined && end.notBeforeMs <= this.#clock();
      if (!hasMore) return end;
      if (polls === maxPolls) throw new Error(`more items are available after ${maxPolls} polls`);
    }
  }

  dryRun(cursor = this.cursor) {
    return this.source.dryRun({ ...this.run(new AbortController().signal), cursor });
  }

  /** The cursor as the API shows it. */
  shownCursor(): unknown {
    return this.cursor === undefined ? null : polling.cursor?.show(this.cursor);
  }

  setCursor(value: unknown): void {
    const parsed = polling.cursor?.parse(value, this.config);
    if (parsed?.ok !== true) throw new Error(`not a cursor: ${JSON.stringify(value)}`);
    this.cursor = parsed.value;
  }

  run(signal: AbortSignal, config = this.config): SourceRun {
    return {
      channel: {
        identity: channel,
        state: "active",
        limits: { maxBodyBytes: 1, maxDepth: 128 },
        kindConfig: config,
        acceptsContentType: () => true,
        methods: [],
        answer: "outcome" as const,
      } as SourceRun["channel"],
      config,
      credentials: this.#options.credentials,
      cursor: this.cursor,
      startedAtMs: this.startedAtMs,
      ingest: async (delivery, { cursor }) =>
        this.#write(() => {
          const result = this.#publish(delivery);
          if (cursor !== undefined) this.cursor = cursor;
          return result;
        }),
      moveTo: async (cursor) =>
        this.#write(() => {
          this.cursor = cursor;
        }),
      opened: () => {},
      warn: (code) => this.warnings.push(code),
      signal,
    };
  }

  #write<T>(write: () => T): T {
    const crash = this.crashes.shift();
    if (crash === "refused") throw new UnavailableError("the write was rejected");
    const written = write();
    if (crash === "died") throw new UnavailableError("the process is gone");
    return written;
  }

  #publish(fetched: FetchedDelivery): IngestResult {
    this.deliveries.push(fetched);
    const delivery = { method: "GET", query: {}, ...fetched };
    const deps = { validatorFor: () => ({ validate: () => undefined }), newEventId: () => "fresh" };
    const normalized = normalize(this.#rules, delivery, deps);
    if (normalized instanceof Promise || normalized.kind !== "normalized")
      throw new Error(JSON.stringify(normalized));
    const { events, failures, received } = normalized;
    this.failures += failures.length;
    for (const { fields, id, identity } of events) this.log.push({ id, identity, data: fields[13] ?? "" });
    const counts = {
      received,
      published: events.length,
      duplicates: 0,
      ignored: 0,
      quarantined: failures.length,
    };
    return { kind: "accepted", outcome: { ...counts, events: [], quarantine: [] } };
  }
}

function rulesOf(stored: unknown, definitions: readonly Definition[]) {
  const config = pollingConfigSchema.parse(stored);
  const rules = compileRules({
    channel,
    profile: pollingProfile,
    config,
    definitions,
  });
  if (!rules.ok) throw new Error(JSON.stringify(rules.error));
  return rules.value;
}
