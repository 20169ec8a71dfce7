import type { VerifiedDelivery } from "../event/received.ts";
import type { NewId } from "../lib/ids.ts";
import type { CompiledSchema, JsonSchema } from "../lib/json-schema/compiled-schema.ts";
import type { Body } from "./body/bodies.ts";
import type { RuleSet } from "./compile.ts";
import type { Envelope } from "./entry.ts";
import type { ItemContext } from "./item.ts";
import type { PathBudget } from "./paths/path.ts";

/** Functions from outside this module that normalization needs. */
export interface NormalizeDeps {
  /** Returns the validator for a definition's `schema`. Returns a promise if the schema must be compiled first. */
  readonly validatorFor: (schema: JsonSchema, lane: string) => CompiledSchema | Promise<CompiledSchema>;
  /** Creates an id for an event that has none. */
  readonly newEventId: NewId;
  /** Called with each item that can be read, before its definitions run. Used to explain deliveries. */
  readonly onItem?: (context: ItemContext) => void;
}

/** Options for processing quarantined items again. */
export interface Redrive {
  /** Id of the redrive. New event ids are derived from it, so running the same redrive twice publishes each event once. */
  readonly id: string;
  /** Event types of the definitions to run. An empty list means all definitions. */
  readonly definitions: readonly string[];
  /** Whether to publish the events under new ids. */
  readonly asNewId: boolean;
}

/** State of the normalization of one delivery. */
export interface Run {
  /** Id of the organization. Schema validation is scheduled round-robin between organizations. */
  readonly lane: string;
  /**
   * Aborts when the sender gets its response, even if validation is not complete. The signal is created only when it is first
   * used.
   */
  readonly abandoned: AbortController;
  readonly rules: RuleSet;
  readonly delivery: VerifiedDelivery;
  readonly body: Body;
  readonly envelope: Envelope;
  readonly deps: NormalizeDeps;
  readonly redrive: Redrive | undefined;
  /** Remaining cost that paths may cause on all items of the delivery. */
  readonly budget: PathBudget;
  /** Remaining bytes for the payloads of all events. Negative if the limit is exceeded. */
  readonly output: { bytesLeft: number };
}
