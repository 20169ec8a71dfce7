import type { HandledSubscription } from "../data/subscriptions/handlers.ts";
import { isJsonData, readAttributes } from "../event/cloud-event.ts";
import type { Definition } from "../event/definition.ts";
import type { DeliveredEvent } from "../event/handler-request.ts";
import { parseJson } from "../event/parse-json.ts";
import type { CompiledSchema, SchemaViolation } from "../lib/json-schema/compiled-schema.ts";
import type { JobOptions } from "../lib/worker-queue.ts";

type Schema = NonNullable<Definition["when"]>;

/** Whether a handler gets an event. `undecided` means that the `when` of its subscription could not be evaluated. */
export type FilterResult = "wanted" | "ignored" | "undecided";

/**
 * Evaluates the `when` of a subscription on an event.
 *
 * @throws UnavailableError if the schema compiler is temporarily unavailable
 */
export type Filter = (
  subscription: Pick<HandledSubscription, "handler" | "organizationId">,
  event: Pick<DeliveredEvent, "fields">,
  options: { readonly signal: AbortSignal },
) => FilterResult | Promise<FilterResult>;

export interface FilterDeps {
  readonly validatorFor: (schema: Schema, lane: string) => CompiledSchema | Promise<CompiledSchema>;
}

/** Minimum length of event data that a worker thread parses, in characters. Parsing it here would delay other events. */
const MIN_LARGE_CHARS = 128 * 1024;

export function createFilter({ validatorFor }: FilterDeps): Filter {
  async function evaluate(
    when: Schema,
    fields: readonly string[],
    caller: JobOptions & { readonly lane: string },
  ): Promise<FilterResult> {
    const validator = await validatorFor(when, caller.lane);
    const violation = await validateEvent(validator, fields, caller);
    if (violation === undefined) return "wanted";
    return violation.isInconclusive ? "undecided" : "ignored";
  }

  return ({ handler: { when }, organizationId: lane }, { fields }, { signal }) =>
    when === undefined ? "wanted" : evaluate(when, fields, { lane, signal });
}

/** Validates the event in the JSON format of CloudEvents: its attributes and `data`. Binary data is in `data_base64`. */
function validateEvent(
  { validate, validateJson }: CompiledSchema,
  fields: readonly string[],
  caller: JobOptions,
): SchemaViolation | undefined | Promise<SchemaViolation | undefined> {
  const { attributes, text } = readAttributes(fields);
  if (text === undefined) return validate(attributes, caller);
  const isJson = isJsonData(attributes.datacontenttype);
  if (text.length >= MIN_LARGE_CHARS && validateJson !== undefined) {
    const others = JSON.stringify(attributes).slice(0, -1);
    return validateJson(`${others},"data":${isJson ? text : JSON.stringify(text)}}`, caller);
  }
  return validate({ ...attributes, data: isJson ? parseJson(text) : text }, caller);
}
