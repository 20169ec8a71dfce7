import { err, type Result } from "../../lib/result.ts";
import { parseBodyPath } from "../message/body-path.ts";
import { type OutgoingRequest, type Place, parsePlace, putInto } from "./place.ts";

/**
 * Gives all items of a delivery a route key, at the first path of `routeBy` that finds a value. If none does, adds the key at the first path
 * at which that is possible. The error explains why the key cannot be set.
 *
 * @param itemsPath path of the list of items, such as `$.entry`. `undefined` if the whole body is the item
 */
export function putRouteKey(
  request: OutgoingRequest,
  { routeBy, itemsPath }: { readonly routeBy: readonly string[]; readonly itemsPath: string | undefined },
  key: string,
): Result<OutgoingRequest, string> {
  let added: Result<OutgoingRequest, string> | undefined;
  for (const path of routeBy) {
    const place = toPlace(path, itemsPath);
    if (place === undefined)
      return err(`the route key cannot be set at ${path}, which is no single place; pass the whole body`);
    let isFound = false;
    const put = putInto(request, place, (before) => {
      isFound ||= isNumber(before) || typeof before === "string" || typeof before === "boolean";
      return isNumber(before) && /^[1-9]\d{0,14}$/.test(key) ? Number(key) : key;
    });
    if (put.ok && isFound) return put;
    const made = put.ok ? put : putWithParent(request, place, key);
    if (made.ok) added ??= made;
  }
  return added ?? err("the delivery has no place for the route key; pass a body that has one");
}

/** Adds a member together with the object that contains it, such as `installation.id` to a body without `installation`. */
function putWithParent(request: OutgoingRequest, place: Place, key: string): Result<OutgoingRequest, string> {
  const parent = /^(\$.+)(?:\.[\w-]+|\['[^']*'\])$/.exec(place.name)?.[1];
  if (parent === undefined) return err("the delivery has no place for the route key");
  const put = putInto(request, { ...place, name: parent }, (before) => before ?? {});
  return put.ok ? putInto(put.value, place, () => key) : put;
}

function toPlace(path: string, itemsPath: string | undefined): Place | undefined {
  const ofBody = /^\$body(?=[.[])/.test(path);
  const place = parsePlace(ofBody ? `$${path.slice("$body".length)}` : path, undefined);
  if (place?.in !== "body") return place;
  const items = itemsPath === undefined || itemsPath.endsWith("[*]") ? itemsPath : `${itemsPath}[*]`;
  const name = ofBody || items === undefined ? place.name : items + place.name.slice(1);
  return parseBodyPath(name).ok ? { in: "body", name } : undefined;
}

/** Returns true for a number, also for one beyond double precision, which is an object of `JSON.rawJSON`. */
const isNumber = (value: unknown): boolean =>
  typeof value === "number" || (typeof value === "object" && value !== null && "rawJSON" in value);
