import type { OutgoingEvent } from "../event/event.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import type { NewId } from "../lib/ids.ts";
import type { CompiledSchema, JsonSchema, SchemaViolation } from "../lib/json-schema/compiled-schema.ts";
import { unlessAborted } from "../lib/wait.ts";
import type { Body } from "./body/bodies.ts";
import { withFormatHint } from "./body/format-hint.ts";
import { exceedsDepth } from "./body/items.ts";
import type { Rule } from "./compile.ts";
import { createEvent, type Envelope } from "./entry.ts";
import { readOwnAttributes } from "./event-attributes.ts";
import { computeEventId } from "./event-id.ts";
import type { Fault } from "./fault.ts";
import { createFilterFault } from "./filter.ts";
import { faultOfText } from "./heartbeat.ts";
import type { BrokenItem, Item, ItemContext } from "./item.ts";
import { ItemReader, type Payload } from "./item-reader.ts";
import { type PathBudget, PathBudgetError } from "./paths/path.ts";
import type { RuleSet } from "./rule-set.ts";

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

/**
 * Result of applying one event definition to an item. `definition` is omitted if the item failed before any definition was applied.
 */
export type ItemResult =
  | { readonly kind: "event"; readonly event: OutgoingEvent }
  | { readonly kind: "fault"; readonly item: ItemPlace; readonly fault: Fault; readonly definition?: string }
  /** The `when` of the definition excludes the item. `reason` says which part of `when` the item violates. */
  | {
      readonly kind: "ignored";
      readonly item: ItemPlace;
      readonly definition: string;
      readonly reason: SchemaViolation;
    };

/** Index of an item in its delivery. `null` means the delivery as a whole. */
export type ItemPlace = OutgoingEvent["item"];

export type Pending = ItemResult | Promise<ItemResult>;

/** Maximum number of nodes that all paths together may visit per item. */
const ITEM_PATH_BUDGET = 200_000;

/**
 * Applies the matching event definitions to an item, and appends the results to `results`. A result is a promise if its schema is
 * validated asynchronously.
 */
export function runItem(run: Run, item: Item | BrokenItem, results: Pending[]): void {
  const { budget, rules } = run;
  if ("fault" in item) {
    results.push(itemFault(item.index, faultOfText(rules, run.delivery, item.text, item.fault, budget)));
    return;
  }
  const { maxDepth } = rules.config.limits;
  if (exceedsDepth(item.value, maxDepth, item.json?.length)) {
    const detail = `the item is nested more than ${maxDepth} levels deep (limits.maxDepth)`;
    results.push(itemFault(getPlace(item), { reason: "too_deep", detail }));
    return;
  }
  const itemBudget: PathBudget = { left: ITEM_PATH_BUDGET };
  const context: ItemContext = { delivery: run.delivery, body: run.body, item };
  run.deps.onItem?.(context);
  const reader = new ItemReader(context, itemBudget);
  spend(budget, itemBudget, () => {
    const selected = selectRules(run, reader);
    if ("reason" in selected) results.push(itemFault(getPlace(item), withFormatHint(selected, run.body)));
    else for (const rule of selected) results.push(runRule(run, { item, reader, rule, itemBudget }));
  });
}

/** Runs `work` with the rest of the item's path budget, and charges the delivery's budget. */
function spend<T>(budget: PathBudget, itemBudget: PathBudget, work: () => T): T {
  const allowed = Math.min(itemBudget.left, budget.left);
  itemBudget.left = allowed;
  const done = work();
  budget.left -= allowed - Math.max(itemBudget.left, 0);
  return done;
}

function selectRules({ redrive, rules }: Run, reader: ItemReader): readonly Rule[] | Fault {
  const matched = withinBudget("typePath", () => matchingRules(rules, reader));
  if ("reason" in matched) return matched;
  const wanted = redrive?.definitions ?? [];
  const selected = wanted.length === 0 ? matched : matched.filter(({ type }) => wanted.includes(type));
  return selected.length > 0 ? selected : { reason: "no_match", detail: "no definition matches the item" };
}

/**
 * Returns the event definitions that match an item: their type equals a value that their `typePath` yields. Numbers (as written in
 * the JSON text) and booleans are compared as strings.
 *
 * @throws PathBudgetError
 */
function matchingRules(rules: RuleSet, reader: ItemReader): readonly Rule[] {
  const matched = [...rules.always];
  for (const { path, byType } of rules.groups) {
    const before = matched.length;
    for (const value of reader.values(path)) {
      const rule = byType.get(typeof value === "boolean" ? String(value) : (value as string));
      if (rule !== undefined && !matched.includes(rule, before)) matched.push(rule);
    }
  }
  return matched.length > 1 ? matched.sort((a, b) => a.index - b.index) : matched;
}

interface SelectedRule {
  readonly item: Item;
  readonly reader: ItemReader;
  readonly rule: Rule;
  readonly itemBudget: PathBudget;
}

/** Applies an event definition to an item that it selects. Its `when` comes first, so that an excluded item costs nothing else. */
function runRule(run: Run, selected: SelectedRule): Pending {
  const { item, itemBudget, reader, rule } = selected;
  if (rule.when === undefined) return toResult(run, item, reader, rule);
  const proceed = (violation: SchemaViolation | undefined): Pending => {
    if (violation === undefined) return toResult(run, item, reader, rule);
    const { type: definition } = rule;
    if (!violation.isInconclusive)
      return { kind: "ignored", item: getPlace(item), definition, reason: violation };
    const fault = createFilterFault(violation);
    return { kind: "fault", item: getPlace(item), fault, definition };
  };
  const verdict = validateWith(run, rule.when, reader.filterInput(run.rules.filterRoots));
  return verdict instanceof Promise
    ? verdict.then((violation) => spend(run.budget, itemBudget, () => proceed(violation)))
    : proceed(verdict);
}

function toResult(run: Run, item: Item, reader: ItemReader, rule: Rule): Pending {
  const fault = (reason: Fault): ItemResult => ({
    kind: "fault",
    item: getPlace(item),
    fault: withFormatHint(reason, run.body),
    definition: rule.type,
  });
  const { ignored } = run.rules;
  const content = ignored && withinBudget("dedupe.ignore", () => ({ hash: reader.hashWithout(ignored) }));
  if (content !== undefined && "reason" in content) return fault(content);
  const id = withinBudget("idPath", () => computeEventId(run, item, reader, rule, content?.hash));
  if ("reason" in id) return fault(id);
  const payload = withinBudget("payloadPath", () => readPayload(run, item, reader, rule));
  if ("reason" in payload) return fault(payload);
  const { attributes } = rule;
  const own = attributes && withinBudget("timePath", () => readOwnAttributes(attributes, reader));
  if (own !== undefined && "reason" in own) return fault(own);
  run.output.bytesLeft -= payload.bytes;
  const finish = (violation: SchemaViolation | undefined): ItemResult =>
    violation === undefined
      ? {
          kind: "event",
          event: createEvent(run.envelope, rule, item, getPlace(item), id, payload, content?.hash, own),
        }
      : fault({ reason: "schema_mismatch", path: violation.path, detail: violation.message });
  const verdict = validate(run, rule, payload);
  return verdict instanceof Promise ? verdict.then(finish) : finish(verdict);
}

function readPayload(
  { output }: Run,
  { event }: Item,
  reader: ItemReader,
  { payloadPath }: Rule,
): Payload | Fault {
  if (output.bytesLeft < 0) {
    const detail = "the payloads of the delivery's events exceed the size limit per delivery";
    return { reason: "path_budget", path: "payloadPath", detail };
  }
  if (payloadPath === undefined || event !== undefined) return reader.wholeItem();
  const detail = `payloadPath ${payloadPath.text} yields no value`;
  return reader.payload(payloadPath) ?? { reason: "payload_missing", path: "payloadPath", detail };
}

function validate(
  run: Run,
  { schema }: Rule,
  { data, isBase64, value }: Payload,
): SchemaViolation | undefined | Promise<SchemaViolation | undefined> {
  if (schema === undefined) return undefined;
  if (data === undefined) return { path: "", message: "the event has no data" };
  if (isBase64)
    return { path: "", message: "must be JSON or text, because a schema cannot validate binary data" };
  return validateWith(run, schema, value);
}

function validateWith(
  { deps, lane, abandoned }: Run,
  schema: JsonSchema,
  value: unknown,
): SchemaViolation | undefined | Promise<SchemaViolation | undefined> {
  const validator = deps.validatorFor(schema, lane);
  const caller = { lane, signal: abandoned.signal };
  // Stop waiting when the signal aborts, because a pending compilation would keep the value in memory.
  return validator instanceof Promise
    ? unlessAborted(caller.signal, validator).then((compiled) => compiled.validate(value, caller))
    : validator.validate(value, caller);
}

function withinBudget<T extends object>(setting: string, read: () => T): T | Fault {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof PathBudgetError)) throw error;
    return { reason: "path_budget", path: setting, detail: error.message };
  }
}

const getPlace = ({ index, isBody }: Item): ItemPlace => (isBody ? null : index);

const itemFault = (item: ItemPlace, fault: Fault): ItemResult => ({ kind: "fault", item, fault });
