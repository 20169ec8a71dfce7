import { mergeContentTypes } from "../event/content-type.ts";
import type { OutgoingEvent } from "../event/event.ts";
import { isQueryMethod } from "../event/methods.ts";
import type { ItemFailure } from "../event/outcome.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import { ok, type Result } from "../lib/result.ts";
import { withTimeout } from "../lib/wait.ts";
import { parseBodyFormat, readBody } from "./body/bodies.ts";
import { decodeTexts } from "./body/decode-texts.ts";
import { takeItems } from "./body/items.ts";
import { decodeQuery, readQueryBody } from "./body/query-body.ts";
import { createEnvelope } from "./entry.ts";
import { type Fault, invalidBody } from "./fault.ts";
import { faultOfText } from "./heartbeat.ts";
import type { BrokenItem, DeliveryItems, Item } from "./item.ts";
import type { PathBudget } from "./paths/path.ts";
import type { RuleSet } from "./rule-set.ts";
import {
  type ItemPlace,
  type ItemResult,
  type NormalizeDeps,
  type Pending,
  type Redrive,
  type Run,
  runItem,
} from "./run-item.ts";

export type { NormalizeDeps } from "./run-item.ts";

/** Selects what to process again: one quarantined item, or a whole quarantined delivery. */
export interface Selection extends Redrive {
  /** Index of the item to process again. `null` processes the whole delivery, split into items by the current config. */
  readonly item: number | null;
}

export type Normalized =
  | {
      readonly kind: "normalized";
      /** Number of items in the delivery, or number of selected items if a quarantined delivery is processed again. */
      readonly received: number;
      /** Ordered by item, then by definition. */
      readonly events: readonly OutgoingEvent[];
      /** At most one failure per item. */
      readonly failures: readonly ItemFailure[];
      /**
       * Number of items without an event and without a failure, because the `when` of each definition excluded them, or because the channel
       * ignores items that match no definition.
       */
      readonly ignored: number;
    }
  /** The delivery has more than `limit` items, or its items produce more than `limit` events and failures. */
  | { readonly kind: "tooManyItems"; readonly limit: number };

/** Maximum number of events and failures per delivery. An item produces up to one for each matching event definition. */
const MAX_RESULTS = 10_000;
/** Maximum number of nodes that all paths together may visit per delivery. */
export const DELIVERY_PATH_BUDGET = 1_000_000;
/**
 * Maximum total payload size of a delivery's events, in bytes. Without this limit, 1000 items that each publish the whole body
 * would need gigabytes.
 */
const DELIVERY_OUTPUT_BYTES = 64 * 1024 * 1024;

/**
 * Converts a delivery to events according to the channel's definitions. An item that matches several definitions can yield both
 * events and failures.
 *
 * Returns a promise only if a schema must be compiled first or is validated in another thread.
 *
 * @param maxWaitMs timeout for that promise
 * @throws UnavailableError after `maxWaitMs`
 * @throws any error of `validatorFor` and of the validators. The content of the delivery never causes an error
 */
export function normalize(
  rules: RuleSet,
  delivery: VerifiedDelivery,
  deps: NormalizeDeps,
  selection?: Selection,
  maxWaitMs?: number,
): Normalized | Promise<Normalized> {
  const started = start(rules, delivery, deps, selection);
  if (started.kind !== "each") return started;
  const { received, results, run } = started;
  if (isSettled(results)) return collect(received, results, run);
  const all = Promise.all(results).then((settled) => collect(received, settled, run));
  return maxWaitMs === undefined ? all : abortAfter(maxWaitMs, all, run.abandoned);
}

/**
 * Waits for `work`, then aborts `controller`. The abort cancels validations that have not started, because they would keep the
 * delivery in memory.
 *
 * @throws UnavailableError if `work` takes longer than `ms`
 */
export async function abortAfter<T>(ms: number, work: Promise<T>, controller: AbortController): Promise<T> {
  try {
    return await withTimeout(ms, work, `the delivery could not be parsed and validated within ${ms} ms`);
  } finally {
    controller.abort();
  }
}

/** Like `normalize`, but returns a separate result for each item and event definition. */
export async function normalizeEach(
  rules: RuleSet,
  delivery: VerifiedDelivery,
  deps: NormalizeDeps,
  selection?: Selection,
): Promise<Each<ItemResult> | Normalized> {
  const started = start(rules, delivery, deps, selection);
  return started.kind === "each" ? { ...started, results: await Promise.all(started.results) } : started;
}

interface Each<R> {
  readonly kind: "each";
  readonly received: number;
  readonly results: readonly R[];
  readonly run: Run;
}

function start(
  rules: RuleSet,
  received: VerifiedDelivery,
  deps: NormalizeDeps,
  selection: Selection | undefined,
): Each<Pending> | Normalized {
  const budget: PathBudget = { left: DELIVERY_PATH_BUDGET };
  const { method } = received;
  const isInQuery = method !== "POST" && rules.profile.takesMethods === true && isQueryMethod(method);
  const decoded = rules.readsQuery || isInQuery ? decodeQuery(received, rules.reading) : ok(received);
  if (!decoded.ok) return createFailure(decoded.error, selection);
  const delivery = decoded.value;
  const heartbeat = findEmptyHeartbeat(rules, delivery, budget);
  if (heartbeat !== undefined) return createFailure(heartbeat, selection);
  const read = rules.profile.readItems?.(delivery) ?? readItems(rules, delivery, budget, isInQuery);
  if (!read.ok) {
    const fault = faultOfText(rules, delivery, delivery.body.toString(), read.error, budget);
    return createFailure(fault, selection);
  }
  const { body, split } = read.value;
  if (split.kind === "tooMany") return { kind: "tooManyItems", limit: split.limit };
  if (split.kind === "fault")
    return createFailure(faultOfText(rules, delivery, "", split.fault, budget), selection);

  const run: Run = {
    rules,
    delivery,
    body,
    envelope: createEnvelope(rules, delivery),
    deps,
    redrive: selection && adjustRedrive(selection, split.items),
    budget,
    lane: rules.channel.organizationId,
    abandoned: new AbortController(),
    output: { bytesLeft: DELIVERY_OUTPUT_BYTES },
  };
  const { items } = split;
  const selected =
    typeof selection?.item === "number" ? items.filter(({ index }) => index === selection.item) : items;
  if (selected.length === 0 && items !== selected)
    return createFailure(
      invalidBody("under the current settings, the delivery does not contain this item"),
      selection,
    );
  const results = runItems(run, selected);
  if (results === undefined) return { kind: "tooManyItems", limit: MAX_RESULTS };
  return { kind: "each", received: selected.length, results, run };
}

/** Returns a fault if an event of a stream has no data, and no definition selects it by its name. */
function findEmptyHeartbeat(
  rules: RuleSet,
  delivery: VerifiedDelivery,
  budget: PathBudget,
): Fault | undefined {
  if (rules.profile.hasHeartbeats !== true || !isEmptyJson(delivery)) return undefined;
  const fault = faultOfText(rules, delivery, "", invalidBody("it is empty"), budget);
  return fault.isHeartbeat && fault;
}

const isEmptyJson = (delivery: VerifiedDelivery): boolean =>
  delivery.body.length === 0 && parseBodyFormat(contentTypeOf(delivery))?.kind === "json";

/** Parses a delivery and splits it into items. */
export function readItems(
  { itemsPath, itemOptions, profile, reading, decode }: RuleSet,
  delivery: VerifiedDelivery,
  budget: PathBudget,
  isInQuery: boolean,
): Result<DeliveryItems, Fault> {
  const isPart = profile.bodiesAreParts === true && !isEmptyJson(delivery);
  const read = isInQuery
    ? readQueryBody(delivery, reading)
    : readBody(delivery.body, contentTypeOf(delivery), { isPart, reading });
  const body = read.ok && decode !== undefined ? decodeTexts(read.value, decode, budget) : read;
  return body.ok
    ? ok({ body: body.value, split: takeItems(body.value, itemsPath, itemOptions, budget) })
    : body;
}

/** Applies the event definitions to all items. Returns `undefined` if there are more than `MAX_RESULTS` results. */
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
    // Prevent unhandled rejections, because the caller does not receive these results.
    if (!isDone) void Promise.allSettled(results);
  }
}

export const contentTypeOf = ({ headers }: VerifiedDelivery): string | undefined =>
  mergeContentTypes(headers["content-type"]);

/**
 * Creates the result for a delivery that failed as a whole. If the failure is retried, the same item and definitions are processed
 * again.
 */
export const createFailure = (fault: Fault, selection: Selection | undefined): Normalized => ({
  kind: "normalized",
  received: 1,
  events: [],
  ignored: 0,
  failures: [{ ...fault, item: selection?.item ?? null, definitions: selection?.definitions ?? [] }],
});

/**
 * Drops the selection of event definitions if a delivery was quarantined as a whole, but is now split into items. These items may
 * match other definitions.
 */
function adjustRedrive(selection: Selection, items: readonly (Item | BrokenItem)[]): Redrive {
  const [first] = items;
  const isWhole = first !== undefined && "isBody" in first && first.isBody;
  return selection.item === null && !isWhole ? { ...selection, definitions: [] } : selection;
}

const isSettled = (results: readonly Pending[]): results is readonly ItemResult[] =>
  !results.some((result) => result instanceof Promise);

/**
 * Collects the results of all items. An item has at most one failure: the first one, with the types of all failed definitions. If an item
 * failed before any definition ran, the failure lists the definitions of the redrive.
 */
function collect(
  received: number,
  results: readonly ItemResult[],
  { redrive, rules }: Pick<Run, "redrive" | "rules">,
): Normalized {
  const events: OutgoingEvent[] = [];
  const failures: ItemFailure[] = [];
  let definitions: string[] = [];
  let excluded: Set<ItemPlace> | undefined;
  for (const result of results) {
    if (result.kind === "event") {
      events.push(result.event);
      continue;
    }
    if (result.kind === "ignored") {
      excluded ??= new Set();
      excluded.add(result.item);
      continue;
    }
    const { definition, fault, item } = result;
    if (isUnmatched(fault) && rules.config.onNoMatch === "ignore") {
      excluded ??= new Set();
      excluded.add(item);
      continue;
    }
    if (failures.at(-1)?.item !== item) {
      definitions = definition === undefined ? [...(redrive?.definitions ?? [])] : [];
      failures.push({ ...fault, item, definitions });
    }
    if (definition !== undefined) definitions.push(definition);
  }
  const ignored = excluded === undefined ? 0 : countIgnored(excluded, [...events, ...failures]);
  return { kind: "normalized", received, events, failures, ignored };
}

/** Returns whether an item matches no definition. Heartbeats of streams only look so, because their text cannot be parsed. */
export const isUnmatched = ({ reason, isHeartbeat }: Fault): boolean =>
  reason === "no_match" && isHeartbeat !== true;

/** Returns the number of excluded items that have no event and no failure. */
function countIgnored(
  excluded: ReadonlySet<ItemPlace>,
  settled: readonly { readonly item: ItemPlace }[],
): number {
  const others = new Set(settled.map(({ item }) => item));
  return [...excluded].filter((item) => !others.has(item)).length;
}
