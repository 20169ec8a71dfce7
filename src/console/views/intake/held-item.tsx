import { toApiError } from "../../api/api-error.ts";
import { type Schemas, send } from "../../api/client.ts";
import { Failure } from "../../kit/explained/explained-items.tsx";
import type { PanelSpec } from "../../kit/failures/failure-panel.tsx";
import { Copyable } from "../../kit/text/copy.tsx";
import { arrivalsOf, StoredRequest } from "../quarantine/item.tsx";

type Held = Schemas["HeldRecord"];
/** An item with its delivery, which the blueprint's owner cannot always read. */
type Item = Held | Schemas["HeldItem"];

const CONFLICT = 409;
/** Reasons of items that the API does not redrive. */
const NOT_REDRIVEN: ReadonlySet<Held["reason"]> = new Set(["signature_invalid", "paused"]);

export const canRedrive = (reason: Held["reason"]): boolean => !NOT_REDRIVEN.has(reason);

/** Loads an item with its delivery. If the delivery may belong to an install, returns the item without it. */
export const loadHeld = (path: string, held: Held, signal: AbortSignal): Promise<Item> =>
  send<Item>("GET", path, { signal }).catch((error: unknown) => {
    if (toApiError(error).status === CONFLICT) return held;
    throw error;
  });

export const HELD_PANEL: PanelSpec<Item, Pick<Schemas["RedriveResult"], "status">> = {
  one: "item",
  title: "Held item",
  permission: "blueprints.write",
  reason: ({ reason, detail }) => <Failure reason={reason} path={null} detail={detail} />,
  redrives: ({ reason }) => (canRedrive(reason) ? [{ verb: "Redrive", body: {} }] : []),
  resultOf: ({ status }) =>
    status === "released"
      ? { isGone: true, text: "Routed. Inlet publishes the item in order." }
      : { isGone: false, text: "No install has the route key of the item, so it is still held." },
  removal: "This permanently deletes the item with its delivery. No install will receive it.",
  facts: (item) => ({ Item: <Copyable text={item.id} what="item id" />, ...arrivalsOf(item) }),
  more: (item) =>
    "body" in item ? (
      <StoredRequest item={item} />
    ) : (
      <p class="faint">The delivery may belong to an install, so you cannot read it.</p>
    ),
};
