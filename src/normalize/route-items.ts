import { hash } from "node:crypto";
import { MAX_ROUTE_KEY_CHARS } from "../event/intake.ts";
import { isQueryMethod } from "../event/methods.ts";
import { createDeliveryFailure, type ItemFailure } from "../event/outcome.ts";
import { parseJson } from "../event/parse-json.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import { ok } from "../lib/result.ts";
import type { Body } from "./body/body.ts";
import type { JsonText } from "./body/payload-slice.ts";
import { decodeQuery } from "./body/query-body.ts";
import type { RulePath } from "./compile.ts";
import type { Fault } from "./fault.ts";
import type { BrokenItem, Item } from "./item.ts";
import { ItemReader } from "./item-reader.ts";
import { DELIVERY_PATH_BUDGET, readItems } from "./normalize.ts";
import { type PathBudget, PathBudgetError } from "./paths/path.ts";
import { QUERY_ROOT } from "./profile.ts";
import type { RuleSet } from "./rule-set.ts";

/** Items of a delivery with the same route key, as a delivery of its own that contains no other items. */
export interface RouteGroup {
  /** `undefined` for items that cannot be routed. */
  readonly key: string | undefined;
  readonly delivery: VerifiedDelivery;
  readonly items: number;
  /** Why the items cannot be routed. `undefined` if they have a key. */
  readonly failure?: ItemFailure;
}

export type Routed =
  | { readonly kind: "routed"; readonly received: number; readonly groups: readonly RouteGroup[] }
  | { readonly kind: "tooManyItems"; readonly limit: number };

export type AnyItem = Item | BrokenItem;

interface Draft {
  readonly key: string | undefined;
  readonly failure: ItemFailure | undefined;
  readonly items: AnyItem[];
}

/**
 * Splits a delivery by the route keys of its items. The groups depend on nothing but the delivery, so a retry has the same ones. The order of
 * the items within a group is that of the delivery.
 *
 * @param paths paths of the route key. The first path that yields a string, number or boolean decides
 */
export function routeItems(rules: RuleSet, paths: readonly RulePath[], received: VerifiedDelivery): Routed {
  const budget: PathBudget = { left: DELIVERY_PATH_BUDGET };
  const opened = openItems(rules, paths, received, budget);
  if (opened.kind === "tooManyItems") return opened;
  if (opened.kind === "fault") return failRouting(received, opened.fault);
  const { delivery, body, items: all } = opened;
  const drafts = new Map<string, Draft>();
  for (const item of all) {
    const found = "fault" in item ? item.fault : findKey(paths, { delivery, body, item }, budget);
    const name = typeof found === "string" ? `=${found}` : found.reason;
    const draft = drafts.get(name);
    if (draft !== undefined) draft.items.push(item);
    else if (typeof found === "string") drafts.set(name, { key: found, failure: undefined, items: [item] });
    else drafts.set(name, { key: undefined, failure: toFailure(found), items: [item] });
  }
  const isWhole = drafts.size === 1;
  const list = isWhole ? undefined : findList(rules, body);
  const groups = [...drafts].map(([name, { key, failure, items }]) => ({
    key,
    items: items.length,
    ...(failure && { failure }),
    delivery: isWhole ? received : cutDelivery(rules, received, { body, list, items, name }),
  }));
  return { kind: "routed", received: all.length, groups };
}

export type OpenedItems =
  | {
      readonly kind: "items";
      readonly delivery: VerifiedDelivery;
      readonly body: Body;
      readonly items: readonly AnyItem[];
    }
  | { readonly kind: "fault"; readonly fault: Fault }
  | { readonly kind: "tooManyItems"; readonly limit: number };

/** Parses a delivery of an intake and splits it into items. */
export function openItems(
  rules: RuleSet,
  paths: readonly RulePath[],
  received: VerifiedDelivery,
  budget: PathBudget,
): OpenedItems {
  const isInQuery = received.method !== "POST" && isQueryMethod(received.method);
  const readsQuery = isInQuery || paths.some(({ root }) => root === QUERY_ROOT);
  const decoded = readsQuery ? decodeQuery(received, rules.reading) : ok(received);
  if (!decoded.ok) return { kind: "fault", fault: decoded.error };
  const delivery = decoded.value;
  const read = readItems(rules, delivery, budget, isInQuery);
  if (!read.ok) return { kind: "fault", fault: read.error };
  const { body, split } = read.value;
  if (split.kind === "tooMany") return { kind: "tooManyItems", limit: split.limit };
  if (split.kind === "fault") return split;
  return { kind: "items", delivery, body, items: split.items };
}

export const NO_ROUTE: Fault = { reason: "no_route", detail: "no path of routeBy yields a route key" };

export const toFailure = ({ reason, detail }: Fault): ItemFailure => createDeliveryFailure(reason, detail);

/** Returns the result for a delivery whose items cannot be read. */
export const failRouting = (delivery: VerifiedDelivery, fault: Fault): Routed => ({
  kind: "routed",
  received: 1,
  groups: [{ key: undefined, delivery, items: 1, failure: toFailure(fault) }],
});

/** Returns the route key of an item, or the reason why it has none. */
function findKey(
  paths: readonly RulePath[],
  context: ConstructorParameters<typeof ItemReader>[0],
  budget: PathBudget,
): string | Fault {
  const reader = new ItemReader(context, budget);
  try {
    for (const path of paths) {
      const [value] = reader.values(path);
      const key = toRouteKey(value);
      if (key !== undefined) return key;
    }
  } catch (error) {
    if (!(error instanceof PathBudgetError)) throw error;
    return { reason: "path_budget", detail: error.message };
  }
  return NO_ROUTE;
}

/** Returns the route key that a value is, or `undefined` if it can be none. PostgreSQL cannot store a NUL character. */
export function toRouteKey(value: unknown): string | undefined {
  const key = typeof value === "boolean" ? String(value) : value;
  if (typeof key !== "string" || key === "") return undefined;
  return key.length <= MAX_ROUTE_KEY_CHARS && !key.includes("\0") ? key : undefined;
}

interface Cut {
  readonly body: Body;
  readonly list: JsonText | undefined;
  readonly items: readonly AnyItem[];
  readonly name: string;
}

/**
 * Creates a delivery with only some of the items. Its id and signed bytes are those of the original delivery together with the group's name,
 * so that two groups for one channel are told apart.
 */
function cutDelivery(
  rules: RuleSet,
  delivery: VerifiedDelivery,
  { body, list, items, name }: Cut,
): VerifiedDelivery {
  const { deliveryId, boundTo } = delivery;
  const mark = hash("sha256", name, "base64url").slice(0, 11);
  const [contentType, text] =
    body.kind === "ndjson"
      ? ["application/x-ndjson", items.map((item) => `${toLine(item)}\n`).join("")]
      : ["application/json", cutJson(rules, body, list, items)];
  return toPart(delivery, {
    contentType,
    body: Buffer.from(text),
    deliveryId: deliveryId && `${deliveryId}.${mark}`,
    boundTo: boundTo && hash("sha256", `${boundTo}\n${name}`, "base64url"),
  });
}

/** Values that a delivery with only some of the items does not share with the original delivery. */
export interface DeliveryPart extends Pick<VerifiedDelivery, "body" | "deliveryId" | "boundTo"> {
  readonly contentType: string;
}

export const toPart = (
  delivery: VerifiedDelivery,
  { contentType, ...part }: DeliveryPart,
): VerifiedDelivery => ({
  ...delivery,
  ...part,
  method: "POST",
  headers: Object.assign(Object.create(null), delivery.headers, { "content-type": contentType }),
  bodyHash: undefined,
});

/** Returns the text of the list of items. It is searched for once, because the search reads the whole body. */
function findList({ itemsPath }: RuleSet, { json, value }: Body): JsonText | undefined {
  const path = itemsPath?.path;
  return path?.kind === "singular" ? json?.find(path.targetsIn(value), path.get(value)) : undefined;
}

/** Returns the text of an item without line breaks, which are white space between the tokens of JSON. */
const toLine = (item: AnyItem): string =>
  ("fault" in item ? item.text : (item.json?.text ?? JSON.stringify(item.value))).replace(/[\r\n]/g, " ");

/** Returns the JSON of the body, in which the list of items contains only the given ones. */
function cutJson(
  { itemsPath }: RuleSet,
  { json, value }: Body,
  list: JsonText | undefined,
  items: readonly AnyItem[],
): string {
  if (itemsPath?.path.kind !== "singular") throw new Error("the items of an intake are not a list");
  const { path } = itemsPath;
  const kept = items.map((item) =>
    "fault" in item ? item.text : (item.json?.text ?? JSON.stringify(item.value)),
  );
  if (json === undefined || list === undefined)
    return JSON.stringify(replaceAt(value, parseJson(path.key) as (string | number)[], kept.map(parse)));
  const { start } = json.span;
  const { text } = json;
  return `${text.slice(0, list.span.start - start)}[${kept.join(",")}]${text.slice(list.span.end - start)}`;
}

const parse = (text: string): unknown => parseJson(text);

/** Returns a copy of a value with another value at a location. */
function replaceAt(value: unknown, [step, ...rest]: readonly (string | number)[], by: unknown): unknown {
  if (step === undefined) return by;
  const copy = Array.isArray(value) ? [...value] : { ...(value as object) };
  const place = Array.isArray(value) && typeof step === "number" && step < 0 ? value.length + step : step;
  Reflect.set(copy, place, replaceAt(Reflect.get(copy, place), rest, by));
  return copy;
}
