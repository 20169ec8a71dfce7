import type { CommonSettings } from "../event/channel.ts";
import type { RulePath } from "./compile.ts";
import type { Fault } from "./fault.ts";
import type { ItemReader } from "./item-reader.ts";
import type { OwnId } from "./profile.ts";

/** An event's id, and what dedupe goes by: undefined where nothing is remembered. */
export interface EventId {
  readonly id: string;
  readonly remembered: string | undefined;
}

export interface IdSources {
  readonly dedupe: CommonSettings["dedupe"];
  /** The scope of ids beside the topic: the `source` of CloudEvents. */
  readonly scope: string | undefined;
  /** Joins an id that `idPath` yields, where the item has one. */
  readonly versionPath: RulePath | undefined;
  /** Stands in for ids that the delivery's signature does not cover. */
  readonly boundTo: string | undefined;
  /** The id that the delivery gives the item. */
  readonly ownId: () => OwnId | undefined;
  /** For an event that brings no id. */
  readonly freshId: () => EventId;
}

const MAX_ID_LENGTH = 512;
/** 22 base64url characters hold 132 bits of the hash. */
const CONTENT_ID_CHARS = 22;

/**
 * The id of an event: by `idPath`, with the item's version where it has one; else the item's own, by its delivery; else a
 * fresh one, by which nothing can be recognized. Where dedupe goes by content, the hash of the whole item is remembered, and
 * is the id too unless `idPath` gives one. Where the delivery is bound to what was signed, that is remembered in place of ids.
 *
 * @throws PathBudgetError
 */
export function identify(
  idPath: RulePath | undefined,
  reader: ItemReader,
  sources: IdSources,
): EventId | Fault {
  const { dedupe, scope, versionPath, boundTo, ownId, freshId } = sources;
  const byContent = dedupe.by === "content";
  const contentId = byContent ? reader.wholeItem().hash.slice(0, CONTENT_ID_CHARS) : undefined;
  const remember = (id: string, by: string): EventId => ({
    id,
    remembered: dedupe.windowSeconds === 0 ? undefined : (contentId ?? boundTo ?? by),
  });
  if (idPath !== undefined) {
    const id = readId(idPath, reader);
    if (typeof id !== "string") return id;
    if (versionPath === undefined) return remember(id, scope === undefined ? id : `${scope}\n${id}`);
    const [version] = reader.values(versionPath);
    const versioned = isVersion(version) ? `${id}/${version}` : id;
    // `42/1` may also be an item's id as it is: what is remembered says where the id ends.
    return remember(versioned, `${id.length}:${versioned}`);
  }
  if (contentId !== undefined) return remember(contentId, contentId);
  const own = ownId();
  return own === undefined ? freshId() : remember(own.id, own.remembered);
}

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

const isVersion = (value: unknown): value is string | boolean =>
  typeof value === "boolean" ||
  (typeof value === "string" && value !== "" && value.length <= MAX_ID_LENGTH && value.isWellFormed());

const kindOf = (value: unknown): string => (Array.isArray(value) ? "an array" : "an object");

const missing = (path: RulePath, found: string): Fault => ({
  reason: "id_missing",
  path: "idPath",
  detail: `idPath ${path.text} yields ${found}`,
});
