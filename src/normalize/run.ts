import type { VerifiedDelivery } from "../event/received.ts";
import type { NewId } from "../lib/ids.ts";
import type { CompiledSchema, JsonSchema } from "../lib/json-schema/compiled-schema.ts";
import type { Body } from "./body/bodies.ts";
import type { RuleSet } from "./compile.ts";
import type { Envelope } from "./entry.ts";
import type { ItemContext } from "./item.ts";
import type { PathBudget } from "./paths/path.ts";

/** External functions that normalization needs. */
export interface NormalizeDeps {
  /** Returns the validator of a definition's `schema`, as a promise if it must be compiled first. */
  readonly validatorFor: (schema: JsonSchema, lane: string) => CompiledSchema | Promise<CompiledSchema>;
  /** Creates the id of an event without one. */
  readonly newEventId: NewId;
  /** Called with each readable item before its definitions run. Used for explanations. */
  readonly onItem?: (context: ItemContext) => void;
}

/** Options of a redrive. */
export interface Redrive {
  /** Id of the redrive. New event ids derive from it, so that running the same redrive twice publishes once. */
  readonly id: string;
  /** Types of the definitions to run; all if empty. */
  readonly definitions: readonly string[];
  /** Whether to publish under a new event id. */
  readonly asNewId: boolean;
}

/** State of one delivery during normalization. */
export interface Run {
  /** The organization id, used to schedule validation fairly between organizations. */
  readonly lane: string;
  /** Aborted when the sender gets its response, even if validation is not complete. The signal is created lazily on first use. */
  readonly abandoned: AbortController;
  readonly rules: RuleSet;
  readonly delivery: VerifiedDelivery;
  readonly body: Body;
  readonly envelope: Envelope;
  readonly deps: NormalizeDeps;
  readonly redrive: Redrive | undefined;
  /** Remaining path cost for all items of the delivery. */
  readonly budget: PathBudget;
  /** Remaining bytes for the payloads of all events; negative when exhausted. */
  readonly output: { bytesLeft: number };
}
