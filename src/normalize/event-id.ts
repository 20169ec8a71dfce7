import type { CommonSettings } from "../event/channel.ts";
import type { RulePath } from "./compile.ts";
import type { Fault } from "./fault.ts";
import type { ItemReader } from "./item-reader.ts";

/** An event's id, and what dedupe goes by: undefined where nothing is remembered. */
export interface EventId {
  readonly id: string;
  readonly remembered: string | undefined;
}

export interface IdSources {
  readonly dedupe: CommonSettings["dedupe"];
  /** An id that the delivery's signature covers. */
  readonly deliveryId: string | undefined;
  /** What dedupe goes by in place of ids, which the delivery's signature does not cover. */
  readonly boundTo: string | undefined;
  readonly item: number;
  /** For an event that brings no id. */
  readonly freshId: () => EventId;
}

const MAX_ID_LENGTH = 512;
/** 22 base64url characters hold 132 bits of the hash. */
const CONTENT_ID_CHARS = 22;

/**
 * The id of an event: by `idPath`; else of the delivery and the item's place in it; else a fresh one, by which nothing can
 * be recognized. Where dedupe goes by content, the hash of the whole item is remembered, and is the id too unless `idPath`
 * gives one. Where the delivery is bound to what was signed, that is remembered in place of ids.
 *
 * @throws PathBudgetError
 */
export function identify(
  idPath: RulePath | undefined,
  reader: ItemReader,
  sources: IdSources,
): EventId | Fault {
  const { dedupe, deliveryId, boundTo, item, freshId } = sources;
  const byContent = dedupe.by === "content";
  const contentId = byContent ? reader.wholeItem().hash.slice(0, CONTENT_ID_CHARS) : undefined;
  const id =
    idPath === undefined ? (contentId ?? ofDelivery(deliveryId ?? boundTo, item)) : readId(idPath, reader);
  if (id === undefined) return freshId();
  if (typeof id !== "string") return id;
  if (dedupe.windowSeconds === 0) return { id, remembered: undefined };
  return { id, remembered: contentId ?? ofDelivery(boundTo, item) ?? id };
}

const ofDelivery = (deliveryId: string | undefined, item: number): string | undefined =>
  deliveryId === undefined ? undefined : `${deliveryId}/${item}`;

function readId(path: RulePath, reader: ItemReader): string | Fault {
  const values = reader.values(path);
  const [value] = values;
  if (values.length !== 1) return missing(path, values.length === 0 ? "nothing" : `${values.length} values`);
  if (typeof value === "boolean") return String(value);
  if (typeof value !== "string") return missing(path, value === null ? "null" : kindOf(value));
  if (value === "") return missing(path, "an empty string");
  if (value.length > MAX_ID_LENGTH) return missing(path, `more than ${MAX_ID_LENGTH} characters`);
  // Two lone surrogates would become one and the same replacement character in UTF-8.
  if (!value.isWellFormed()) return missing(path, "a string that is not Unicode");
  return value;
}

const kindOf = (value: unknown): string => (Array.isArray(value) ? "an array" : "an object");

const missing = (path: RulePath, found: string): Fault => ({
  reason: "id_missing",
  path: "idPath",
  detail: `idPath ${path.text} yields ${found}`,
});
