import type { OutgoingEvent } from "../event/event.ts";
import type { SchemaViolation } from "../lib/json-schema/compiled-schema.ts";
import { unlessAborted } from "../lib/wait.ts";
import { exceedsDepth } from "./body/depth.ts";
import { withFormatHint } from "./body/format-hint.ts";
import type { Rule, RuleSet } from "./compile.ts";
import { createEvent } from "./entry.ts";
import { computeEventId } from "./event-id.ts";
import type { Fault } from "./fault.ts";
import { faultOfText } from "./heartbeat.ts";
import type { BrokenItem, Item, ItemContext } from "./item.ts";
import { ItemReader, type Payload } from "./item-reader.ts";
import { type PathBudget, PathBudgetError } from "./paths/path.ts";
import type { Run } from "./run.ts";

/**
 * Result of applying one event definition to an item. `definition` is omitted if the item failed before any definition was applied.
 */
export type ItemResult =
  | { readonly kind: "event"; readonly event: OutgoingEvent }
  | { readonly kind: "fault"; readonly item: ItemPlace; readonly fault: Fault; readonly definition?: string };

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
  const allowed = Math.min(ITEM_PATH_BUDGET, budget.left);
  const itemBudget: PathBudget = { left: allowed };
  const context: ItemContext = { delivery: run.delivery, body: run.body, item };
  run.deps.onItem?.(context);
  const reader = new ItemReader(context, itemBudget);
  const selected = selectRules(run, reader);
  if ("reason" in selected) results.push(itemFault(getPlace(item), withFormatHint(selected, run.body)));
  else for (const rule of selected) results.push(runRule(run, item, reader, rule));
  budget.left -= allowed - Math.max(itemBudget.left, 0);
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

function runRule(run: Run, item: Item, reader: ItemReader, rule: Rule): Pending {
  const fault = (reason: Fault): ItemResult => ({
    kind: "fault",
    item: getPlace(item),
    fault: withFormatHint(reason, run.body),
    definition: rule.type,
  });
  const id = withinBudget("idPath", () => computeEventId(run, item, reader, rule));
  if ("reason" in id) return fault(id);
  const payload = withinBudget("payloadPath", () => readPayload(run, item, reader, rule));
  if ("reason" in payload) return fault(payload);
  run.output.bytesLeft -= payload.bytes;
  const finish = (violation: SchemaViolation | undefined): ItemResult =>
    violation === undefined
      ? { kind: "event", event: createEvent(run.envelope, rule, item, getPlace(item), id, payload) }
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
  const { deps, lane, abandoned } = run;
  if (schema === undefined) return undefined;
  if (data === undefined) return { path: "", message: "the event has no data" };
  if (isBase64)
    return { path: "", message: "must be JSON or text, because a schema cannot validate binary data" };
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
