import { isAttributeText } from "../event/cloud-event.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import type { NewId } from "../lib/ids.ts";
import type { Rule, RulePath } from "./compile.ts";
import type { Fault } from "./fault.ts";
import type { Item } from "./item.ts";
import type { ItemReader } from "./item-reader.ts";
import type { EventId } from "./profile.ts";
import type { RuleSet } from "./rule-set.ts";

/** The parts of a run that decide the ids of its events. */
interface IdRun {
  readonly rules: RuleSet;
  readonly delivery: VerifiedDelivery;
  readonly deps: { readonly newEventId: NewId };
  readonly redrive: { readonly id: string; readonly asNewId: boolean } | undefined;
}

export const MAX_ID_LENGTH = 512;
/** Length of an event id that is derived from the content, in base64url characters. 22 characters hold 132 bits of the hash. */
const CONTENT_ID_CHARS = 22;

/**
 * Computes the id of an event from the first source that is available:
 * - the value at `idPath`, followed by the item's version if it has one
 * - the content hash, if `dedupe.by` is `"content"`
 * - the item's own id, which is derived from its delivery
 * - a random id, with which no duplicate can be detected
 *
 * With `dedupe.by: "content"`, dedupe always compares the content hash, even if the id comes from `idPath`.
 *
 * @param reducedHash content hash without the values at `dedupe.ignore`, if the channel ignores values
 * @throws PathBudgetError
 */
export function computeEventId(
  { delivery, deps, redrive, rules }: IdRun,
  item: Item,
  reader: ItemReader,
  { idPath }: Rule,
  reducedHash: string | undefined,
): EventId | Fault {
  const { dedupe } = rules.config;
  const remember = (id: string, by: string | undefined): EventId => ({
    id,
    remembered: dedupe.windowSeconds === 0 ? undefined : by,
  });
  const freshId = (): EventId => {
    if (redrive === undefined) return { id: deps.newEventId(), remembered: undefined };
    const id = `${redrive.id}/${item.index}`;
    return remember(id, id);
  };
  if (redrive?.asNewId === true) return freshId();

  const content = dedupe.by === "content" ? reader.wholeItem() : undefined;
  // An item without data has no content, so two such items are not repeats of each other.
  const contentId =
    content?.data === undefined ? undefined : (reducedHash ?? content.hash).slice(0, CONTENT_ID_CHARS);
  if (idPath !== undefined) {
    const id = readId(idPath, reader);
    if (typeof id !== "string") return id;
    const scope = item.event?.source;
    if (rules.versionPath === undefined)
      return remember(id, contentId ?? (scope === undefined ? id : `${scope}\n${id}`));
    const [version] = reader.values(rules.versionPath);
    if (typeof version === "string" && !isAttributeText(version))
      return {
        reason: "id_missing",
        path: "versionPath",
        detail: `${rules.versionPath.text} yields ${UNFIT}`,
      };
    const versioned = isVersion(version) ? `${id}/${version}` : id;
    // Prefix the length of the id. Otherwise, an unversioned item with the id `42/1` would match version 1 of item 42.
    return remember(versioned, contentId ?? `${id.length}:${versioned}`);
  }
  if (contentId !== undefined) return remember(contentId, contentId);
  const own = rules.ownId(delivery, item);
  if (own === undefined) return freshId();
  if (!isAttributeText(own.id)) return { reason: "id_missing", detail: `the delivery's own id is ${UNFIT}` };
  return remember(own.id, own.remembered);
}

function readId(path: RulePath, reader: ItemReader): string | Fault {
  const values = reader.values(path);
  const [value] = values;
  if (values.length !== 1) return missing(path, values.length === 0 ? "no value" : `${values.length} values`);
  if (typeof value === "boolean") return String(value);
  if (typeof value !== "string") return missing(path, value === null ? "null" : describeKind(value));
  if (value === "") return missing(path, "an empty string");
  if (value.length > MAX_ID_LENGTH) return missing(path, `more than ${MAX_ID_LENGTH} characters`);
  // Also prevents that different ids become equal, because UTF-8 encodes all lone surrogates as the same replacement character.
  if (!isAttributeText(value)) return missing(path, UNFIT);
  return value;
}

const UNFIT =
  "a text with control characters, lone surrogates or noncharacters, which no CloudEvent id may contain";

const isVersion = (value: unknown): value is string | boolean =>
  typeof value === "boolean" || (typeof value === "string" && value !== "" && value.length <= MAX_ID_LENGTH);

const describeKind = (value: unknown): string => (Array.isArray(value) ? "an array" : "an object");

const missing = (path: RulePath, found: string): Fault => ({
  reason: "id_missing",
  path: "idPath",
  detail: `idPath ${path.text} yields ${found}`,
});
