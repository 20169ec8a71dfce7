import type { VerifiedDelivery } from "../event/received.ts";
import type { NewId } from "../lib/ids.ts";
import type { CompiledSchema, JsonSchema } from "../lib/json-schema/compiled-schema.ts";
import type { Body } from "./body/bodies.ts";
import type { RuleSet } from "./compile.ts";
import type { Envelope } from "./entry.ts";
import type { ItemContext } from "./item.ts";
import type { PathBudget } from "./paths/path.ts";

/** The functions that the rules need from outside. */
export interface NormalizeDeps {
  /** The validator of a definition's `schema`: a value where it is compiled already (the hot path), else a promise. */
  readonly validatorFor: (schema: JsonSchema, lane: string) => CompiledSchema | Promise<CompiledSchema>;
  /** Makes the id of an event that brings none. */
  readonly newEventId: NewId;
  /** Told of each item that could be read, before its definitions are run; for explanations. */
  readonly onItem?: (context: ItemContext) => void;
}

/** How a re-drive differs: by the definitions named alone (none: by all), under a fresh id where `asNewId`. */
export interface Redrive {
  /** Names it: fresh ids are made of this one, so that the same re-drive twice, or twice at once, publishes once. */
  readonly id: string;
  readonly definitions: readonly string[];
  readonly asNewId: boolean;
}

/** One delivery on its way through the rules. */
export interface Run {
  /** Its organization: the lane of its checks. */
  readonly lane: string;
  /** Aborts when its sender is answered, before all was checked or after. Its signal is made only where something waits. */
  readonly abandoned: AbortController;
  readonly rules: RuleSet;
  readonly delivery: VerifiedDelivery;
  readonly body: Body;
  readonly envelope: Envelope;
  readonly deps: NormalizeDeps;
  readonly redrive: Redrive | undefined;
  /** The cost left for the paths of all its items. */
  readonly budget: PathBudget;
  /** Bytes that the payloads of all its events may still hold; below 0 once they are used up. */
  readonly output: { bytesLeft: number };
}
