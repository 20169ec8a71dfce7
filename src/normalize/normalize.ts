import type { OutgoingEvent } from "../event/event.ts";
import type { ItemFailure } from "../event/outcome.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import { ok, type Result } from "../lib/result.ts";
import { withTimeout } from "../lib/wait.ts";
import { readBody, readForm } from "./body/bodies.ts";
import { takeItems } from "./body/items.ts";
import type { RuleSet } from "./compile.ts";
import { createEnvelope } from "./entry.ts";
import { type Fault, invalidBody } from "./fault.ts";
import type { BrokenItem, DeliveryItems, Item } from "./item.ts";
import type { PathBudget } from "./paths/path.ts";
import type { NormalizeDeps, Redrive, Run } from "./run.ts";
import { type ItemResult, type Pending, runItem } from "./run-item.ts";

export type { NormalizeDeps } from "./run.ts";

/** Re-drive of one item of a delivery; null: of the delivery as a whole, whatever items it has today. */
export interface Selection extends Redrive {
  readonly item: number | null;
}

export type Normalized =
  | {
      readonly kind: "normalized";
      /** Items in the delivery; of a re-drive, those run. */
      readonly received: number;
      /** In the order of items, and of definitions in each. */
      readonly events: readonly OutgoingEvent[];
      /** At most one per item. */
      readonly failures: readonly ItemFailure[];
    }
  /** More items than `limit`, or more events of them. */
  | { readonly kind: "tooManyItems"; readonly limit: number };

/** Events, or failures, of one delivery: its items times the definitions that match them. */
const MAX_RESULTS = 10_000;
/** Nodes that the paths of all items of a delivery may visit together. */
const DELIVERY_PATH_BUDGET = 1_000_000;
/** Of payloads: a thousand items that each publish the whole body would make gigabytes of it. */
const DELIVERY_OUTPUT_BYTES = 64 * 1024 * 1024;

/**
 * Makes of one delivery the events that its channel's definitions ask for, and a failure of each item that cannot become
 * them; an item may do both, by different definitions. Answers at once unless a schema's validator is a promise, or
 * answers by one; that promise is waited for no longer than `maxWaitMs`.
 *
 * @throws UnavailableError where that is over; what `validatorFor` and the validators throw; nothing that the delivery holds makes it throw.
 */
export function normalize(
  rules: RuleSet,
  delivery: VerifiedDelivery,
  deps: NormalizeDeps,
  only?: Selection,
  maxWaitMs?: number,
): Normalized | Promise<Normalized> {
  const begun = start(rules, delivery, deps, only);
  if (begun.kind !== "each") return begun;
  const { received, results, run } = begun;
  if (isSettled(results)) return collect(received, results, run);
  const all = Promise.all(results).then((settled) => collect(received, settled, run));
  return maxWaitMs === undefined ? all : abortAfter(maxWaitMs, all, run.abandoned);
}

/**
 * What was not begun when the sender is answered is not begun any more, and holds the delivery no longer.
 *
 * @throws UnavailableError when it is late
 */
export async function abortAfter<T>(ms: number, work: Promise<T>, leaving: AbortController): Promise<T> {
  try {
    return await withTimeout(ms, work, `the delivery was not read and checked within ${ms} ms`);
  } finally {
    leaving.abort();
  }
}

/** As `normalize`, for explanations. */
export async function normalizeEach(
  rules: RuleSet,
  delivery: VerifiedDelivery,
  deps: NormalizeDeps,
  only?: Selection,
): Promise<Each<ItemResult> | Normalized> {
  const begun = start(rules, delivery, deps, only);
  return begun.kind === "each" ? { ...begun, results: await Promise.all(begun.results) } : begun;
}

/** The result of each item under each definition, not yet collected. */
interface Each<R> {
  readonly kind: "each";
  readonly received: number;
  readonly results: readonly R[];
  readonly run: Run;
}

function start(
  rules: RuleSet,
  delivery: VerifiedDelivery,
  deps: NormalizeDeps,
  only: Selection | undefined,
): Each<Pending> | Normalized {
  const budget: PathBudget = { left: DELIVERY_PATH_BUDGET };
  const read = rules.profile.readItems?.(delivery) ?? readItems(rules, delivery, budget);
  if (!read.ok) return createFailure(read.error, only);
  const { body, split } = read.value;
  if (split.kind === "tooMany") return { kind: "tooManyItems", limit: split.limit };
  if (split.kind === "fault") return createFailure(split.fault, only);

  const run: Run = {
    rules,
    delivery,
    body,
    envelope: createEnvelope(rules, delivery),
    deps,
    redrive: only && adjustRedrive(only, split.items),
    budget,
    lane: rules.channel.organizationId,
    abandoned: new AbortController(),
    output: { bytesLeft: DELIVERY_OUTPUT_BYTES },
  };
  const { items } = split;
  const selected = typeof only?.item === "number" ? items.filter(({ index }) => index === only.item) : items;
  if (selected.length === 0 && items !== selected)
    return createFailure(invalidBody("the item is no more"), only);
  const results = runItems(run, selected);
  if (results === undefined) return { kind: "tooManyItems", limit: MAX_RESULTS };
  return { kind: "each", received: selected.length, results, run };
}

function readItems(
  { itemsPath, itemOptions, profile, forms }: RuleSet,
  delivery: VerifiedDelivery,
  budget: PathBudget,
): Result<DeliveryItems, Fault> {
  const whole = readBody(delivery.body, contentTypeOf(delivery), { isPart: profile.bodiesAreParts === true });
  const body = whole.ok && whole.value.kind === "form" ? readForm(whole.value, forms) : whole;
  return body.ok
    ? ok({ body: body.value, split: takeItems(body.value, itemsPath, itemOptions, budget) })
    : body;
}

/** Undefined where there are too many results. */
function runItems(run: Run, items: readonly (Item | BrokenItem)[]): readonly Pending[] | undefined {
  const results: Pending[] = [];
  let isDone = false;
  try {
    for (const item of items) {
      runItem(run, item, results);
      if (results.length > MAX_RESULTS) return undefined;
    }
    isDone = true;
    return results;
  } finally {
    // Nobody waits for what is under way any more: its errors must not count as unhandled.
    if (!isDone) void Promise.allSettled(results);
  }
}

export function contentTypeOf({ headers }: VerifiedDelivery): string | undefined {
  const header = headers["content-type"];
  return typeof header === "object" ? header[0] : header;
}

/** The item and definitions stay selected: the next re-drive must find the same. */
export const createFailure = (fault: Fault, only: Selection | undefined): Normalized => ({
  kind: "normalized",
  received: 1,
  events: [],
  failures: [{ ...fault, item: only?.item ?? null, definitions: only?.definitions ?? [] }],
});

/** Of a delivery that is split only now, the definitions that failed with the whole say nothing of its items. */
function adjustRedrive(only: Selection, items: readonly (Item | BrokenItem)[]): Redrive {
  const [first] = items;
  const isWhole = first !== undefined && "isBody" in first && first.isBody;
  return only.item === null && !isWhole ? { ...only, definitions: [] } : only;
}

const isSettled = (results: readonly Pending[]): results is readonly ItemResult[] =>
  !results.some((result) => result instanceof Promise);

/**
 * Of an item's failures one is kept: the first, with the types of all definitions that failed; of an item that came to none of
 * them, those that were to be run.
 */
function collect(
  received: number,
  results: readonly ItemResult[],
  { redrive: only }: Pick<Run, "redrive">,
): Normalized {
  const events: OutgoingEvent[] = [];
  const failures: ItemFailure[] = [];
  let definitions: string[] = [];
  for (const result of results) {
    if (result.kind === "event") {
      events.push(result.event);
      continue;
    }
    const { definition, fault, item } = result;
    if (failures.at(-1)?.item !== item) {
      definitions = definition === undefined ? [...(only?.definitions ?? [])] : [];
      failures.push({ ...fault, item, definitions });
    }
    if (definition !== undefined) definitions.push(definition);
  }
  return { kind: "normalized", received, events, failures };
}
