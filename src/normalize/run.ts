import type { VerifiedDelivery } from "../event/received.ts";
import type { NewId } from "../lib/ids.ts";
import type { CompiledSchema, JsonSchema } from "../lib/json-schema/compiled-schema.ts";
import type { Body } from "./body/bodies.ts";
import type { RuleSet } from "./compile.ts";
import type { Envelope } from "./entry.ts";
import type { ItemContext } from "./item.ts";
import type { PathBudget } from "./paths/path.ts";

export interface NormalizeDeps {
  /** Returns the validator of a schema, or a promise if the schema must be compiled first. */
  readonly validatorFor: (schema: JsonSchema, lane: string) => CompiledSchema | Promise<CompiledSchema>;
  readonly newEventId: NewId;
  /** Called with each parsed item before event definitions are applied to it. Used to explain how a delivery is processed. */
  readonly onItem?: (context: ItemContext) => void;
}

/** Options for processing quarantined items again. */
export interface Redrive {
  /**
   * Id of this retry of a quarantined delivery. New event ids are derived from it, so repeating the retry publishes no event twice.
   */
  readonly id: string;
  /** Event types of the definitions to apply. Empty for all definitions. */
  readonly definitions: readonly string[];
  readonly asNewId: boolean;
}

export interface Run {
  /** Organization id. Schema validation is scheduled round-robin between organizations. */
  readonly lane: string;
  /**
   * Aborts when the sender gets its response, even if schema validations are still pending. Node creates the signal on first
   * access.
   */
  readonly abandoned: AbortController;
  readonly rules: RuleSet;
  readonly delivery: VerifiedDelivery;
  readonly body: Body;
  readonly envelope: Envelope;
  readonly deps: NormalizeDeps;
  readonly redrive: Redrive | undefined;
  /** Remaining path cost budget of the delivery. */
  readonly budget: PathBudget;
  /** Remaining payload bytes of the delivery. Negative once the size limit is exceeded. */
  readonly output: { bytesLeft: number };
}
